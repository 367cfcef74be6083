import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { TestApiServer } from "../../../test/helpers/kube/api-server.ts";
import { Refused } from "../../../test/helpers/kube/store.ts";
import { until } from "../../../test/helpers/until.ts";
import { LogOutput } from "../../base/log.ts";
import { parseLogFilter } from "../../base/log-filter.ts";
import type { HttpRoute } from "../../kube/objects.ts";
import type { DesiredStatus } from "./desired.ts";
import { StatusWriter } from "./writer.ts";

const OURS = "tracegate.dev/gateway-controller";
const accepted = { type: "Accepted", status: "True", reason: "Accepted", message: "" } as const;
const refused = { type: "Accepted", status: "False", reason: "NoMatchingParent", message: "" } as const;

/** A writer that knows what the server holds, as if the watches were immediate, until the end of the test. */
async function start(t: TestContext) {
  const server = await TestApiServer.start();
  const log = new LogOutput(parseLogFilter("info"), "text", () => {}).logger("gateway-controller");
  const client = server.client();
  const request = client.request.bind(client);
  const answered: unknown[] = [];
  client.request = async (...asked) => {
    const answer = await request(...asked);
    answered.push(answer);
    return answer as never;
  };
  const writer = new StatusWriter({
    client,
    controllerName: OURS,
    live: (kind, key) => server.get(kind, key),
    log,
  });
  t.after(async () => {
    await writer.close();
    await server.stop();
  });
  return { server, writer, answered };
}

function addRoute(server: TestApiServer, name = "route"): void {
  server.set({
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    metadata: { name, namespace: "apps" },
    ...{ spec: {} },
  });
}

function addGateway(server: TestApiServer): void {
  server.set({
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "Gateway",
    metadata: { name: "web", namespace: "apps" },
    ...{ spec: { gatewayClassName: "tracegate" } },
  });
}

function routeStatus(condition: typeof accepted | typeof refused = accepted, name = "route"): DesiredStatus {
  const parents = [{ parentRef: { name: "web" }, conditions: [condition] }];
  return { kind: "HTTPRoute", key: `apps/${name}`, generation: 1, status: { parents } };
}

function gatewayStatus(attachedRoutes: number): DesiredStatus {
  const listener = { name: "http", supportedKinds: [], attachedRoutes, conditions: [accepted] };
  return { kind: "Gateway", key: "apps/web", generation: 1, status: { conditions: [accepted], listeners: [listener] } };
}

function writes(server: TestApiServer, kind: "httproutes" | "gateways" = "httproutes"): number {
  return server.received.filter(({ method, path }) => method === "PATCH" && path.includes(`/${kind}/`)).length;
}

const route = (server: TestApiServer): HttpRoute | undefined => server.get("HTTPRoute", "apps/route");
const statusOf = (server: TestApiServer): string | undefined =>
  route(server)?.status?.parents?.find(({ controllerName }) => controllerName === OURS)?.conditions[0]?.status;

test("a status is written once, with the generation that it is about", async (t) => {
  const { server, writer } = await start(t);
  addRoute(server);
  writer.update([routeStatus()]);
  await until(() => statusOf(server) === "True", "the status");
  assert.equal(route(server)?.status?.parents?.[0]?.conditions[0]?.observedGeneration, 1);
  // The same status in new objects, as after a restart of the controller.
  writer.update([routeStatus()]);
  await writer.close();
  assert.equal(writes(server), 1);
});

test("a new leader writes only what differs", async (t) => {
  const { server, writer } = await start(t);
  for (const name of ["route", "other"]) addRoute(server, name);
  writer.update([routeStatus(), routeStatus(accepted, "other")]);
  await until(() => writes(server) === 2, "two writes");
  const second = await start(t);
  for (const name of ["route", "other"]) second.server.set(server.get("HTTPRoute", `apps/${name}`) as never);
  second.writer.update([routeStatus(), routeStatus(refused, "other")]);
  await until(() => writes(second.server) === 1, "one write");
  await second.writer.close();
  assert.equal(writes(second.server), 1);
});

test("what another controller writes at the same time is kept", async (t) => {
  const { server, writer } = await start(t);
  addRoute(server);
  const theirs = { parentRef: { name: "web" }, controllerName: "example.com/other", conditions: [] };
  let first = true;
  server.intercept = ({ method }) => {
    if (method !== "PATCH" || !first) return;
    first = false;
    server.set({ ...(route(server) as HttpRoute), status: { parents: [theirs] } } as HttpRoute);
  };
  writer.update([routeStatus()]);
  await until(() => statusOf(server) === "True", "the status");
  assert.deepEqual(route(server)?.status?.parents?.[0], theirs);
  assert.equal(writer.counters.conflicts, 1);
});

test("a failed write is retried later", async (t) => {
  const { server, writer } = await start(t);
  addRoute(server);
  let failures = 2;
  server.intercept = ({ method }) => {
    if (method === "PATCH" && failures-- > 0) throw new Refused(500, "InternalError", "no");
  };
  writer.update([routeStatus()]);
  await until(() => statusOf(server) === "True", "the status");
  assert.equal(writer.counters.failures, 2);
});

test("a deleted object is not a failure", async (t) => {
  const { server, writer } = await start(t);
  addRoute(server);
  let asked = false;
  server.intercept = ({ method }) => {
    if (method !== "PATCH") return;
    server.delete("HTTPRoute", "apps/route");
    asked = true;
  };
  writer.update([routeStatus()]);
  await until(() => asked, "a write");
  await writer.close();
  assert.equal(writer.counters.failures, 0);
});

test("a status that the server stores differently is not written forever", async (t) => {
  const { server, writer } = await start(t);
  addGateway(server);
  // As with a CRD that does not know the field.
  const store = server.store.put.bind(server.store);
  server.store.put = (collection, key, object) => {
    const { attachedListenerSets: _, ...status } = (object.status ?? {}) as Record<string, unknown>;
    return store(collection, key, { ...object, status });
  };
  const wanted = gatewayStatus(1);
  const desired = (): DesiredStatus => ({ ...wanted, status: { ...wanted.status, attachedListenerSets: 0 } as never });
  for (let i = 0; i < 20; i++) {
    writer.update([desired()]);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  await writer.close();
  assert.ok(writes(server, "gateways") <= 2, String(writes(server, "gateways")));
});

test("1000 routes cost one write each, and their Gateway far less than one for each", async (t) => {
  const { server, writer } = await start(t);
  addGateway(server);
  const statuses: DesiredStatus[] = [];
  for (let i = 1; i <= 1000; i++) {
    addRoute(server, `route${i}`);
    statuses.push(routeStatus(accepted, `route${i}`));
    if (i % 10 !== 0) continue;
    writer.update([gatewayStatus(i), ...statuses]);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const attached = () => server.get("Gateway", "apps/web")?.status?.listeners?.[0]?.attachedRoutes;
  await until(() => attached() === 1000 && writes(server) >= 1000, "everything is written");
  await writer.close();
  assert.equal(writes(server), 1000);
  assert.ok(writes(server, "gateways") <= 50, String(writes(server, "gateways")));
});

test("an object that was deleted and recreated gets its status, even if versions start again", async (t) => {
  const { server, writer, answered } = await start(t);
  addRoute(server);
  writer.update([routeStatus()]);
  await until(() => answered.length === 1, "the response of the write");
  const made = { ...(route(server) as HttpRoute), status: { parents: [] } };
  server.delete("HTTPRoute", "apps/route");
  writer.update([]);
  // As after the restore of a backup.
  server.set(made);
  const get = server.get.bind(server);
  server.get = ((kind: "HTTPRoute", key: string) => {
    const live = get(kind, key);
    return live && { ...live, metadata: { ...live.metadata, resourceVersion: "1" } };
  }) as typeof server.get;
  assert.equal(statusOf(server), undefined);
  writer.update([routeStatus()]);
  await until(() => statusOf(server) === "True", "the status again");
});
