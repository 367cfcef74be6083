import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { PassThrough, Readable } from "node:stream";
import { test } from "node:test";
import { ofGateway, testCluster } from "../../../test/helpers/kube/tgctl.ts";
import { serve } from "../fixtures/admin.ts";
import { Cluster } from "./cluster.ts";
import { openClusterProxies } from "./proxies.ts";

test("the ports of a pod that is gone are closed, also if another one has its name; those of the others stay", async (t) => {
  const { server, kubeconfig, gateway, pod, connect: lead } = await testCluster(t);
  gateway("web");
  const { port } = await serve(t, (_, response) => response.end());
  for (const name of ["web-1", "web-2"]) {
    pod(name, { labels: ofGateway("web") });
    lead(name, 80, port);
  }
  const none = { local: false, "proxy-admin-port": undefined, pod: undefined, context: undefined };
  const options = { ...none, namespace: "shop", kubeconfig };
  await using proxies = await openClusterProxies(
    { argument: "gateway/web", options },
    {
      stdin: Readable.from([]),
      stdout: new PassThrough(),
      stderr: new PassThrough(),
      env: {},
      json: false,
      signal: t.signal,
    },
  );
  const ports = async (): Promise<(number | undefined)[]> => {
    const outcomes = await proxies.each((proxy) => proxy.reach(80));
    return outcomes.map(({ result }) => (result.status === "fulfilled" ? result.value : undefined));
  };
  const [first, second] = await ports();
  assert.deepEqual(await ports(), [first, second], "a port is forwarded once");
  const answers = async (at = 0): Promise<number> => (await fetch(`http://127.0.0.1:${at}`)).status;
  assert.equal(await answers(first), 200);
  server.delete("Pod", "shop/web-1");
  pod("web-1", { labels: ofGateway("web") });
  const [renewed, kept] = await ports();
  assert.notEqual(renewed, first);
  assert.equal(kept, second);
  assert.deepEqual([await answers(renewed), await answers(kept)], [200, 200]);
  const [refused] = await once(connect(first ?? 0, "127.0.0.1"), "error");
  assert.equal(refused.code, "ECONNREFUSED");
});

test("closing the ports of a pod that is gone leaves those of the next pod with its name open", async (t) => {
  const { kubeconfig } = await testCluster(t);
  const options = { context: undefined, namespace: "shop", kubeconfig };
  await using cluster = await Cluster.connect(options, { env: {} });
  const [gone, next] = ["1", "2"].map((uid) => ({
    apiVersion: "v1",
    kind: "Pod" as const,
    metadata: { name: "web-1", namespace: "shop", uid },
    status: { phase: "Running" },
  }));
  assert.ok(gone !== undefined && next !== undefined);
  const [former, present] = [await cluster.forward(gone, 80), await cluster.forward(next, 80)];
  cluster.closeForwards(gone);
  const [refused] = await once(connect(former.port, "127.0.0.1"), "error");
  assert.equal(refused.code, "ECONNREFUSED");
  const socket = connect(present.port, "127.0.0.1");
  await once(socket, "connect");
  socket.destroy();
});

test("a Gateway that shares proxies is reached at those of its class, in the namespace of the parameters", async (t) => {
  const { server, tgctl, gateway, pod, connect: lead } = await testCluster(t);
  gateway("web");
  const parametersRef = { group: "tracegate.dev", kind: "TracegateParameters", name: "shared", namespace: "edge" };
  const gatewayClass = {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "GatewayClass",
    metadata: { name: "tracegate" },
  };
  const spec = { controllerName: "tracegate.dev/gateway-controller" };
  server.set({ ...gatewayClass, spec } as never);
  let asked = 0;
  const { port } = await serve(t, (_, response) => {
    asked++;
    response.end("{}");
  });
  const labels = { "tracegate.dev/owning-gateway-class": "tracegate" };
  for (const namespace of ["edge", "shop"]) pod("tracegate-1", { namespace, labels });
  lead("tracegate-1", 15000, port, "edge");
  const ask = () => tgctl("config", "listeners", "gateway/web", "-n", "shop");
  assert.match((await ask()).stderr, /no pods found for resource "gateway\/web"/);
  server.set({ ...gatewayClass, spec: { ...spec, parametersRef } } as never);
  await ask();
  assert.equal(asked, 1);
  // Of its own from before, about to end.
  const metadata = {
    name: "web-1",
    namespace: "shop",
    labels: ofGateway("web"),
    deletionTimestamp: "2026-01-01T00:00:00Z",
  };
  server.set({ apiVersion: "v1", kind: "Pod", metadata, status: { phase: "Running" } } as never);
  await ask();
  assert.equal(asked, 2);
});
