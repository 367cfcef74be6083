import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Graph } from "./graph/graph.ts";
import { ProxyReports } from "./proxy-reports.ts";

const KEY = "apps/web";
const MINUTE = 60_000;

function reports(t: TestContext) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const graph = new Graph();
  const seen = { changes: 0, rejections: [] as string[] };
  const collector = new ProxyReports({
    graph,
    changed: () => {
      seen.changes++;
    },
    rejected: (gateway, { pod, message }) => seen.rejections.push(`${gateway} ${pod} ${message}`),
  });
  const shown = (): (readonly string[])[] =>
    (graph.get("ProxyReport", KEY)?.rejections ?? []).map(({ pod, message }) => [pod, message]);
  const proxy = (message: string | null, { pod = "web-1", peer = "10.0.0.1:1", acknowledged = "" } = {}) => ({
    gateway: KEY,
    pod,
    peer,
    acknowledged,
    rejection: message === null ? null : { message, version: "v1", heldBack: [] },
  });
  return { collector, seen, shown, proxy, graph };
}

test("a rejection is there until the proxy applies a state", (t) => {
  const { collector, seen, shown, proxy } = reports(t);
  collector.update(proxy(null), true);
  assert.equal(seen.changes, 0);
  collector.update(proxy("no such cipher"), true);
  collector.update(proxy("no such cipher"), true);
  assert.deepEqual(shown(), [["web-1", "no such cipher"]]);
  assert.deepEqual([seen.changes, seen.rejections], [1, ["apps/web web-1 no such cipher"]]);
  collector.update(proxy(null, { acknowledged: "v2" }), true);
  assert.deepEqual([shown(), seen.changes], [[], 2]);
});

test("a proxy that reconnects and rejects the same state again changes nothing", (t) => {
  const { collector, seen, shown, proxy } = reports(t);
  collector.update(proxy("no such cipher"), true);
  collector.update(proxy("no such cipher"), false);
  const again = { peer: "10.0.0.1:2" };
  collector.update(proxy(null, again), true);
  collector.update(proxy("no such cipher", again), true);
  t.mock.timers.tick(MINUTE);
  assert.deepEqual(shown(), [["web-1", "no such cipher"]]);
  assert.deepEqual([seen.changes, seen.rejections.length], [1, 1]);
});

test("the end of an old connection does not end what the new one reported", (t) => {
  const { collector, shown, proxy } = reports(t);
  collector.update(proxy("no such cipher"), true);
  collector.update(proxy("no such cipher", { peer: "10.0.0.1:2" }), true);
  collector.update(proxy("no such cipher"), false);
  t.mock.timers.tick(MINUTE);
  assert.equal(shown().length, 1);
});

test("the rejection of a disconnected proxy is dropped, also if it reconnected without applying anything", (t) => {
  const { collector, shown, proxy } = reports(t);
  collector.update(proxy("no such cipher"), true);
  collector.update(proxy("no such cipher"), false);
  collector.update(proxy(null, { peer: "10.0.0.1:2" }), true);
  assert.equal(shown().length, 1);
  t.mock.timers.tick(MINUTE);
  assert.deepEqual(shown(), []);
});

test("of many proxies the first by name are shown", (t) => {
  const { collector, shown, proxy } = reports(t);
  for (let i = 30; i > 0; i--) collector.update(proxy("full", { pod: `web-${i + 10}` }), true);
  assert.deepEqual(
    shown().map(([pod]) => pod),
    Array.from({ length: 10 }, (_, i) => `web-${i + 11}`),
  );
});

test("shared proxies serve the Gateways that all connected ones have acknowledged", (t) => {
  const { collector, seen, proxy, graph } = reports(t);
  const shared = (peer: string) => ({ ...proxy(null, { peer, acknowledged: "v1" }), gateway: "GatewayClass/shared" });
  const serving = () => graph.get("ProxyReport", "GatewayClass/shared")?.serving;
  const [both, one] = [["a/web", "b/web"], ["a/web"]];
  collector.update(shared("1"), true);
  assert.equal(serving(), undefined, "it has not acknowledged any state");
  collector.update(shared("1"), true, both);
  collector.update(shared("2"), true);
  assert.deepEqual(serving(), both);
  collector.update(shared("2"), true, one);
  collector.update(shared("3"), true, [...both]);
  assert.deepEqual(serving(), one);
  collector.update(shared("3"), false);
  collector.update(shared("2"), false, one);
  assert.deepEqual(serving(), both);
  collector.update(shared("1"), false);
  assert.equal(serving(), undefined);
  assert.equal(seen.changes, 4);
});
