/** Two Gateways that share a proxy: what a controller sends, what a real proxy refuses, and what statuses say. */
import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import type { ConfigStatus } from "../../../src/admin/plane/config-status.ts";
import { LogOutput } from "../../../src/base/log.ts";
import { sharedDeploymentName } from "../../../src/controller/base/manifest.ts";
import { controllerSettings } from "../../../src/controller/base/settings.ts";
import { Controller } from "../../../src/controller/controller.ts";
import { componentFilter } from "../../../src/controller/log-levels.ts";
import type { Service } from "../../../src/kube/objects.ts";
import { unguarded } from "../../../src/net/testing/egress.ts";
import { freePort } from "../../helpers/free-ports.ts";
import { GatewayProcess } from "../../helpers/gateway.ts";
import { TestApiServer } from "../../helpers/kube/api-server.ts";
import { until } from "../../helpers/until.ts";

const GATEWAY_API = "gateway.networking.k8s.io/v1";
const SHARED = { namespace: "infra", name: "shared" };

test("a Gateway whose part a proxy refuses is held back alone, and says why; the other Gateway's changes are served", async () => {
  await using server = await TestApiServer.start();
  const set = (apiVersion: string, kind: string, metadata: object, spec: object): void =>
    void server.set({ apiVersion, kind, metadata, spec } as never);
  const parametersRef = { group: "tracegate.dev", kind: "TracegateParameters", ...SHARED };
  const controllerName = "tracegate.dev/gateway-controller";
  set(GATEWAY_API, "GatewayClass", { name: "shared" }, { controllerName, parametersRef });
  const mergeGateways = { namespaces: { from: "All" } };
  set("tracegate.dev/v1alpha1", "TracegateParameters", SHARED, { mergeGateways });
  const port = await freePort();
  const member = (team: string, ...ports: readonly number[]): void => {
    const listeners = ports.map((port, i) => ({
      name: `http-${i}`,
      port,
      protocol: "HTTP",
      hostname: `${team}.example.com`,
    }));
    set(GATEWAY_API, "Gateway", { namespace: team, name: "web" }, { gatewayClassName: "shared", listeners });
  };
  const answer = (team: string, body: string): void => {
    const ref = { group: "tracegate.dev", kind: "TracegatePolicy", name: "answer" };
    const rules = [{ filters: [{ type: "ExtensionRef", extensionRef: ref }] }];
    set(GATEWAY_API, "HTTPRoute", { namespace: team, name: "all" }, { parentRefs: [{ name: "web" }], rules });
    const traffic = { directResponse: { status: 200, body } };
    set("tracegate.dev/v1alpha1", "TracegatePolicy", { namespace: team, name: "answer" }, { traffic });
  };
  for (const team of ["a", "b"]) answer(team, "one");
  member("a", port);
  member("b", port);
  const env = { POD_NAME: "one", TRACEGATE_XDS_MODE: "plaintext", TRACEGATE_XDS_AUTH: "false" };
  const controller = await Controller.start({
    settings: { ...controllerSettings(env, "0.0.0", "host"), ports: { admin: 0, metrics: 0, health: 0, xds: 0 } },
    access: server.access,
    version: "0.0.0",
    build: () => ({}),
    output: new LogOutput(componentFilter("error"), "json", () => {}, "component"),
    own: unguarded(),
  });
  try {
    await using proxy = await GatewayProcess.launch(
      {},
      {
        env: {
          XDS_ADDRESS: `http://127.0.0.1:${controller.ports.xds}`,
          NAMESPACE: SHARED.namespace,
          GATEWAY_CLASS: "shared",
          POD_NAME: "shared-1",
        },
      },
    );
    await proxy.until(() => proxy.ready, "the first state");
    server.set({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { ...SHARED, name: "shared-1", labels: { "tracegate.dev/owning-gateway-class": "shared" } },
      status: { conditions: [{ type: "Ready", status: "True" }] },
    } as never);
    const service = await until(() => server.get("Service", `infra/${sharedDeploymentName("shared")}`), "the Service");
    server.set({ ...service, spec: { ...(service as Service).spec, clusterIP: "10.0.0.9" } } as never);
    const serves = (team: string, body: string) =>
      until(async () => (await get(port, `${team}.example.com`)) === body, `${body} of ${team}`);
    const programmed = (team: string) =>
      server.get("Gateway", `${team}/web`)?.status?.conditions?.find(({ type }) => type === "Programmed");
    for (const team of ["a", "b"]) {
      await serves(team, "one");
      await until(() => programmed(team)?.status === "True", `${team} to be programmed`);
    }

    // A container beside the proxy, or the host of its network, has the port: the controller cannot know.
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, "::", resolve));
    const taken = (other.address() as AddressInfo).port;
    answer("b", "two");
    member("b", port, taken);
    await until(() => programmed("b")?.status === "False", "the rejection");
    assert.equal(programmed("b")?.reason, "Invalid");
    const expected = `Shared proxy shared-1 rejected the configuration of this Gateway and keeps its former one: cannot listen on port ${taken}`;
    assert.ok(programmed("b")?.message?.startsWith(expected), programmed("b")?.message);
    const listeners = server.get("Gateway", "b/web")?.status?.listeners ?? [];
    assert.deepEqual(
      listeners.map(({ conditions }) => conditions.find(({ type }) => type === "Programmed")?.status),
      ["False", "False"],
    );
    answer("a", "two");
    await serves("a", "two");
    await serves("b", "one");
    assert.equal(programmed("a")?.status, "True");
    const { stream, synchronized } = (await (
      await fetch(`${proxy.url("admin")}/config/status`)
    ).json()) as ConfigStatus;
    assert.deepEqual([synchronized, stream?.heldBack?.map(({ gateway }) => gateway)], [false, ["b/web"]]);
    const events = server.store.list("v1/events").map(([, event]) => event as unknown as RejectionEvent);
    assert.deepEqual(
      events.map(({ involvedObject: { kind, namespace } }) => `${kind} ${namespace}`),
      ["Gateway b"],
    );
    // The proxy tries again by itself.
    await new Promise((resolve) => other.close(resolve));
    await serves("b", "two");
    assert.equal(await get(taken, "b.example.com"), "two");
    await until(() => programmed("b")?.status === "True", "the end of the rejection");
  } finally {
    await controller.close();
  }
});

interface RejectionEvent {
  readonly involvedObject: { readonly kind: string; readonly namespace: string };
}

/** The body of a response to `GET /`. */
function get(port: number, host: string): Promise<string> {
  return new Promise((resolve, reject) => {
    request({ port, headers: { host }, agent: false }, (response) => text(response).then(resolve, reject))
      .on("error", reject)
      .end();
  });
}
