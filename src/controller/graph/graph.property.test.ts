/** A graph that has seen many changes answers as one that sees the objects for the first time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/helpers/property.ts";
import type { Namespace, Service } from "../../kube/objects.ts";
import { defineIndex, defineQuery, Graph } from "./graph.ts";

const NAMES = ["a", "b", "c"];

function namespace(name: string, next: string): Namespace {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, namespace: "", labels: { next } } };
}

function service(name: string, app: string): Service {
  return { apiVersion: "v1", kind: "Service", metadata: { namespace: "x", name }, spec: { selector: { app } } };
}

const BY_APP = defineIndex("Service", ({ spec }) => [spec.selector?.app ?? ""]);
/** What it reads depends on what it has read, and fails for some of it. */
const next = defineQuery("next", (read, name) => {
  const label = read.get("Namespace", name)?.metadata.labels?.next;
  if (label === "bad") throw new Error(`${name} is bad`);
  return label;
});
const apps = defineQuery("apps", (read, name) => {
  const other = read.query(next, name);
  return other === undefined ? [] : read.find(BY_APP, other).map(({ metadata }) => metadata.name);
});
/** Equal for many objects, so results above it often stay as they are. */
const many = defineQuery("many", (read, name) => read.query(apps, name).length > 1);
const all = defineQuery("all", (read) => ({
  many: NAMES.filter((name) => read.query(many, name)),
  services: read.list("Service").map(({ metadata }) => metadata.name),
}));
const QUERIES = [next, apps, many, all] as const;

type Step = (graph: Graph) => unknown;

const value = fc.constantFrom(...NAMES, "bad");
const name = fc.constantFrom(...NAMES);
const change: fc.Arbitrary<Step> = fc.oneof(
  fc.tuple(name, value).map(
    ([each, to]): Step =>
      (graph) =>
        graph.set(namespace(each, to)),
  ),
  fc.tuple(name, value).map(
    ([each, app]): Step =>
      (graph) =>
        graph.set(service(each, app)),
  ),
  name.map(
    (each): Step =>
      (graph) =>
        graph.delete("Namespace", each),
  ),
  name.map(
    (each): Step =>
      (graph) =>
        graph.delete("Service", `x/${each}`),
  ),
);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: change },
  {
    weight: 3,
    arbitrary: fc.tuple(fc.nat(QUERIES.length - 1), name).map(
      ([query, key]): Step =>
        (graph) =>
          answer(graph, query, key),
    ),
  },
  { weight: 1, arbitrary: fc.constant<Step>((graph) => graph.collect()) },
);

function answer(graph: Graph, query: number, key: string): unknown {
  try {
    return graph.query<unknown, string>(QUERIES[query] ?? all, key);
  } catch (error) {
    return String(error);
  }
}

test("results after any changes, questions and collections are those of a new graph", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const graph = new Graph();
      for (const each of steps) each(graph);
      const fresh = new Graph();
      for (const kind of ["Namespace", "Service"] as const) fresh.replace(kind, graph.list(kind));
      for (const [i] of QUERIES.entries())
        for (const key of NAMES) assert.deepEqual(answer(graph, i, key), answer(fresh, i, key), `${i} ${key}`);
    }),
    { numRuns: 2000 },
  );
});
