import assert from "node:assert/strict";
import { test } from "node:test";
import { TestApiServer } from "../../test/helpers/kube/api-server.ts";
import { LogOutput } from "../base/log.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import type { KubeClient } from "../kube/client.ts";
import { defineQuery, Graph } from "./graph/graph.ts";
import { ReferencedObjects } from "./referenced-objects.ts";

test("close ends the request that is in progress, and resolves after it", async (t) => {
  await using server = await TestApiServer.start();
  const secret = { apiVersion: "v1", kind: "Secret", metadata: { namespace: "apps", name: "web" } } as const;
  server.set(secret);
  const asked = Promise.withResolvers<void>();
  server.intercept = () => {
    asked.resolve();
    return new Promise(() => {});
  };
  const events: string[] = [];
  const client = server.client();
  t.after(() => client.close());
  const observed: KubeClient = {
    request: (...args) => client.request<never>(...args).finally(() => void events.push("the request has ended")),
    watch: () => assert.fail("it watches nothing"),
  };
  const graph = new Graph();
  graph.query(
    defineQuery("secret", (read) => read.get("Secret", "apps/web")?.data),
    "",
  );
  const lines: string[] = [];
  const sink = { set: () => void events.push("set"), delete: () => void events.push("delete") };
  const referenced = new ReferencedObjects({
    ...{ client: observed, graph, sinks: { Secret: sink, ConfigMap: sink } },
    changed: () => void events.push("changed"),
    log: new LogOutput(parseLogFilter("info"), "text", (line) => lines.push(line)).logger("default"),
  });
  referenced.set({ ...secret, metadata: { ...secret.metadata, resourceVersion: "1" } });
  await asked.promise;
  await referenced.close();
  assert.deepEqual(events, ["the request has ended"]);
  assert.deepEqual(lines, []);
});
