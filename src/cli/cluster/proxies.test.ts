import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { PassThrough, Readable } from "node:stream";
import { test } from "node:test";
import { ofGateway, testCluster } from "../../../test/helpers/kube/tgctl.ts";
import { serve } from "../fixtures/admin.ts";
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
