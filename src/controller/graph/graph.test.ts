import assert from "node:assert/strict";
import { test } from "node:test";
import type { Gateway, HttpRoute, Namespace, Service } from "../../kube/objects.ts";
import { defineIndex, defineQuery, Graph, type Query } from "./graph.ts";

function namespace(name: string, labels: Record<string, string> = {}, resourceVersion?: string): Namespace {
  const metadata = { name, namespace: "", labels, ...(resourceVersion !== undefined && { resourceVersion }) };
  return { apiVersion: "v1", kind: "Namespace", metadata };
}

function service(key: string, selector: Record<string, string> = {}): Service {
  const [space = "", name = ""] = key.split("/");
  return { apiVersion: "v1", kind: "Service", metadata: { namespace: space, name }, spec: { selector } };
}

/** A query that notes for which keys it ran. */
function counted<Result>(run: Query<Result>["run"]): { readonly query: Query<Result>; ran(): string[] } {
  let keys: string[] = [];
  const query = defineQuery<Result>("counted", (read, key) => {
    keys.push(key);
    return run(read, key);
  });
  return {
    query,
    ran() {
      const before = keys;
      keys = [];
      return before;
    },
  };
}

test("a query runs again only when something that it read has changed", () => {
  const graph = new Graph();
  const { query, ran } = counted((read, key) => ({
    tier: read.get("Namespace", key)?.metadata.labels?.tier ?? "none",
  }));
  graph.set(namespace("a", { tier: "gold" }));
  assert.deepEqual(graph.query(query, "a"), { tier: "gold" });
  assert.deepEqual(graph.query(query, "b"), { tier: "none" });
  assert.deepEqual(ran(), ["a", "b"]);
  graph.set(namespace("other"));
  graph.query(query, "a");
  graph.query(query, "b");
  assert.deepEqual(ran(), []);
  graph.set(namespace("b", { tier: "silver" }));
  assert.deepEqual(graph.query(query, "b"), { tier: "silver" });
  graph.query(query, "a");
  assert.deepEqual(ran(), ["b"]);
  graph.delete("Namespace", "b");
  assert.deepEqual(graph.query(query, "b"), { tier: "none" });
});

test("a result that is equal keeps its identity, and what depends on it does not run", () => {
  const graph = new Graph();
  const tier = counted((read, key) => ({ tier: read.get("Namespace", key)?.metadata.labels?.tier }));
  const page = counted((read, key) => ({ text: `${key}: ${read.query(tier.query, key).tier}` }));
  graph.set(namespace("a", { tier: "gold" }));
  const [first, text] = [graph.query(tier.query, "a"), graph.query(page.query, "a")];
  tier.ran();
  page.ran();
  graph.set(namespace("a", { tier: "gold", unrelated: "yes" }));
  assert.equal(graph.query(page.query, "a"), text);
  assert.equal(graph.query(tier.query, "a"), first);
  assert.deepEqual([tier.ran(), page.ran()], [["a"], []]);
  graph.set(namespace("a", { tier: "silver" }));
  assert.equal(graph.query(page.query, "a").text, "a: silver");
});

test("an object that is written again without a change causes no change, but has the newest version", () => {
  const graph = new Graph();
  const { query, ran } = counted((read) => read.list("Namespace").length);
  graph.set(namespace("a", {}, "1"));
  graph.query(query, "");
  ran();
  const { revision, version } = graph;
  graph.set(namespace("a", {}, "2"));
  assert.equal(graph.revision, revision);
  assert.equal(graph.version, version);
  assert.equal(graph.get("Namespace", "a")?.metadata.resourceVersion, "2");
  graph.query(query, "");
  assert.deepEqual(ran(), []);
});

test("lists and indexes are sorted by key; an index runs its readers only for the values that changed", () => {
  const graph = new Graph();
  const byApp = defineIndex("Service", ({ spec }) => (spec.selector?.app === undefined ? [] : [spec.selector.app]));
  const names = counted((read, app) => read.find(byApp, app).map(({ metadata }) => metadata.name));
  const all = counted((read) => read.list("Service").map(({ metadata }) => metadata.name));
  graph.set(service("x/two", { app: "shop" }));
  assert.deepEqual(graph.query(names.query, "shop"), ["two"]);
  graph.set(service("x/one", { app: "shop" }));
  graph.set(service("x/zero", { app: "blog" }));
  assert.deepEqual(graph.query(names.query, "shop"), ["one", "two"]);
  assert.deepEqual(graph.query(names.query, "blog"), ["zero"]);
  assert.deepEqual(graph.query(all.query, ""), ["one", "two", "zero"]);
  names.ran();
  graph.set(service("x/two", { app: "blog" }));
  assert.deepEqual(graph.query(names.query, "shop"), ["one"]);
  assert.deepEqual(graph.query(names.query, "blog"), ["two", "zero"]);
  names.ran();
  graph.delete("Service", "x/zero");
  assert.deepEqual(graph.query(names.query, "shop"), ["one"]);
  assert.deepEqual(graph.query(names.query, "blog"), ["two"]);
  assert.deepEqual(names.ran(), ["blog"]);
  assert.deepEqual(
    graph.list("Service").map(({ metadata }) => metadata.name),
    ["one", "two"],
  );
});

test("replace removes all objects that are not given", () => {
  const graph = new Graph();
  const { query } = counted((read) => read.list("Namespace").map(({ metadata }) => metadata.name));
  graph.replace("Namespace", [namespace("a"), namespace("b")]);
  assert.deepEqual(graph.query(query, ""), ["a", "b"]);
  graph.replace("Namespace", [namespace("b"), namespace("c")]);
  assert.deepEqual(graph.query(query, ""), ["b", "c"]);
  graph.replace("Namespace", []);
  assert.deepEqual(graph.query(query, ""), []);
});

test("a query whose later reads depend on earlier ones depends only on the current ones", () => {
  const graph = new Graph();
  const { query, ran } = counted((read, key) => {
    const next = read.get("Namespace", key)?.metadata.labels?.next;
    return next === undefined ? "end" : (read.get("Namespace", next)?.metadata.labels?.text ?? "none");
  });
  graph.set(namespace("a", { next: "b" }));
  graph.set(namespace("b", { text: "one" }));
  graph.set(namespace("c", { text: "two" }));
  assert.equal(graph.query(query, "a"), "one");
  graph.set(namespace("a", { next: "c" }));
  assert.equal(graph.query(query, "a"), "two");
  ran();
  graph.set(namespace("b", { text: "changed" }));
  assert.equal(graph.query(query, "a"), "two");
  assert.deepEqual(ran(), []);
});

test("a query that throws throws again until what it read has changed, and does not spoil others", () => {
  const graph = new Graph();
  const strict = defineQuery("strict", (read, key) => {
    const text = read.get("Namespace", key)?.metadata.labels?.text;
    if (text === "bad") throw new Error(`${key} is bad`);
    return text;
  });
  const page = defineQuery("page", (read, key) => `<${read.query(strict, key)}>`);
  graph.set(namespace("a", { text: "fine" }));
  graph.set(namespace("b", { text: "bad" }));
  assert.equal(graph.query(page, "a"), "<fine>");
  for (let i = 0; i < 2; i++) assert.throws(() => graph.query(page, "b"), /b is bad/);
  graph.set(namespace("a", { text: "bad" }));
  for (let i = 0; i < 2; i++) assert.throws(() => graph.query(page, "a"), /a is bad/);
  graph.set(namespace("a", { text: "fine" }));
  assert.equal(graph.query(page, "a"), "<fine>");
  graph.set(namespace("b", { text: "mended" }));
  assert.equal(graph.query(page, "b"), "<mended>");
});

test("a query that depends on itself is an error, not an endless loop", () => {
  const graph = new Graph();
  const even: Query<number> = defineQuery("even", (read, key) => read.query(odd, key));
  const odd: Query<number> = defineQuery("odd", (read, key) => read.query(even, key));
  assert.throws(() => graph.query(even, "a"), { message: "query even of a depends on itself" });
});

test("collect drops only results about removed objects", () => {
  const graph = new Graph();
  const one = counted((read, key) => read.get("Namespace", key)?.metadata.labels?.text ?? "none");
  const all = counted((read) => read.list("Namespace").map((each) => read.query(one.query, each.metadata.name)));
  graph.set(namespace("a", { text: "x" }));
  graph.set(namespace("b", { text: "y" }));
  assert.deepEqual(graph.query(all.query, ""), ["x", "y"]);
  graph.delete("Namespace", "b");
  assert.deepEqual(graph.query(all.query, ""), ["x"]);
  one.ran();
  graph.collect();
  assert.deepEqual(graph.query(all.query, ""), ["x"]);
  graph.query(one.query, "a");
  assert.deepEqual(one.ran(), []);
  graph.query(one.query, "b");
  assert.deepEqual(one.ran(), ["b"]);
  // What is left is still followed.
  graph.set(namespace("a", { text: "z" }));
  graph.set(namespace("b", { text: "new" }));
  assert.deepEqual(graph.query(all.query, ""), ["z", "new"]);
});

test("a change of a route's status runs no query, but readers and writers get the newest", () => {
  const graph = new Graph();
  const route = (resourceVersion: string, hostname: string, parents: HttpRoute["status"]): HttpRoute => ({
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    metadata: { name: "main", namespace: "apps", resourceVersion },
    spec: { hostnames: [hostname] },
    ...(parents !== undefined && { status: parents }),
  });
  const { query, ran } = counted((read, key) => read.get("HTTPRoute", key)?.spec.hostnames?.[0]);
  const tier = defineQuery(
    "tier",
    (read, key) => `${read.get("HTTPRoute", key)?.status?.parents?.length}${read.list("Namespace").length}`,
  );
  graph.set(route("1", "a.example.com", undefined));
  assert.equal(graph.query(query, "apps/main"), "a.example.com");
  graph.query(tier, "apps/main");
  const { revision, version } = graph;
  graph.set(route("2", "a.example.com", { parents: [] }));
  assert.equal(graph.revision, revision);
  assert.equal(graph.version, version + 1);
  assert.deepEqual(graph.get("HTTPRoute", "apps/main")?.status, { parents: [] });
  graph.set(namespace("other"));
  assert.equal(graph.query(tier, "apps/main"), "01");
  graph.query(query, "apps/main");
  assert.deepEqual(ran(), ["apps/main"]);
  graph.set(route("3", "b.example.com", { parents: [] }));
  assert.equal(graph.query(query, "apps/main"), "b.example.com");
});

test("of a Gateway's status, only a change of the conditions runs queries", () => {
  const graph = new Graph();
  const gateway = (attachedRoutes: number, status: "True" | "False"): Gateway => ({
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "Gateway",
    metadata: { name: "web", namespace: "apps" },
    spec: { gatewayClassName: "tracegate" },
    status: {
      listeners: [{ name: "http", supportedKinds: [], attachedRoutes, conditions: [] }],
      conditions: [{ type: "Programmed", status, reason: "Programmed", message: "" }],
    },
  });
  graph.set(gateway(1, "False"));
  const { revision } = graph;
  graph.set(gateway(2, "False"));
  assert.equal(graph.revision, revision);
  graph.set(gateway(2, "True"));
  assert.notEqual(graph.revision, revision);
});
