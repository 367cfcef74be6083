import assert from "node:assert/strict";
import { test } from "node:test";
import { TestApiServer } from "../../test/helpers/kube/api-server.ts";
import { LogOutput } from "../base/log.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import { EventRecorder } from "./events.ts";
import type { KubeObject } from "./objects.ts";

const gateway: KubeObject = {
  apiVersion: "gateway.networking.k8s.io/v1",
  kind: "Gateway",
  metadata: { namespace: "apps", name: "web", uid: "1" },
};
const rejected = { type: "Warning", reason: "TracegateNackError", message: "no such cipher" } as const;

function recorder(server: TestApiServer, lines: string[] = []): EventRecorder & Disposable {
  const client = server.client();
  const log = new LogOutput(parseLogFilter("info"), "text", (line) => lines.push(line)).logger("default");
  return Object.assign(new EventRecorder(client, "tracegate", "pod", log), { [Symbol.dispose]: () => client.close() });
}

function events(server: TestApiServer): Record<string, unknown>[] {
  return server.store.list("v1/events").map(([, event]) => event);
}

test("the same event is written once, other events separately", async () => {
  await using server = await TestApiServer.start();
  using events1 = recorder(server);
  await events1.record(gateway, rejected);
  await events1.record(gateway, rejected);
  await events1.record(gateway, { ...rejected, message: "x".repeat(5000) });
  const [first, second] = events(server).toSorted((a) => (a.message === "no such cipher" ? -1 : 1));
  assert.equal(events(server).length, 2);
  assert.deepEqual(first?.involvedObject, {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "Gateway",
    namespace: "apps",
    name: "web",
    uid: "1",
  });
  assert.deepEqual([first?.type, first?.reason, first?.count], ["Warning", "TracegateNackError", 1]);
  assert.ok(String(second?.message).length <= 1024);
});

test("an event is in the namespace of its object, or in default for an object of the cluster", async () => {
  await using server = await TestApiServer.start();
  using run = recorder(server);
  await run.record(gateway, rejected);
  await run.record({ ...gateway, kind: "GatewayClass", metadata: { ...gateway.metadata, namespace: "" } }, rejected);
  const namespaces = server.store.list("v1/events").map(([key]) => key.split("/")[0]);
  assert.deepEqual(namespaces.toSorted(), ["apps", "default"]);
});

test("an event that another run has written is counted", async () => {
  await using server = await TestApiServer.start();
  for (let i = 0; i < 2; i++) {
    using run = recorder(server);
    await run.record(gateway, rejected);
  }
  assert.deepEqual(
    events(server).map(({ count }) => count),
    [2],
  );
});

test("an event that cannot be written is logged", async () => {
  await using server = await TestApiServer.start();
  const lines: string[] = [];
  using run = recorder(server, lines);
  server.missing.add("v1/events");
  await run.record(gateway, rejected);
  assert.match(lines[0] ?? "", /an event could not be written reason=TracegateNackError/);
});

test("events of an object are limited; others are not affected", async () => {
  await using server = await TestApiServer.start();
  using run = recorder(server);
  for (let i = 0; i < 40; i++) await run.record(gateway, { ...rejected, message: String(i) });
  assert.equal(events(server).length, 25);
  await run.record({ ...gateway, metadata: { ...gateway.metadata, name: "other", uid: "2" } }, rejected);
  assert.equal(events(server).length, 26);
});

test("events do not accumulate while the API server does not respond", async () => {
  await using server = await TestApiServer.start();
  const { promise, resolve } = Promise.withResolvers<void>();
  let asked = 0;
  server.intercept = () => {
    asked++;
    return promise;
  };
  using run = recorder(server);
  const all = Array.from({ length: 300 }, (_, i) =>
    run.record({ ...gateway, metadata: { ...gateway.metadata, name: `g${i}`, uid: `${i}` } }, rejected),
  );
  resolve();
  await Promise.all(all);
  assert.equal(asked, 100);
  assert.equal(events(server).length, 100);
});
