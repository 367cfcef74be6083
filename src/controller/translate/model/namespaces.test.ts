import assert from "node:assert/strict";
import { test } from "node:test";
import type { LabelSelector, NamespacesFrom } from "../../../kube/objects.ts";
import { defineQuery, Graph } from "../../graph/graph.ts";
import { isFromAllowed, matchesLabels } from "./namespaces.ts";

const LABELS = { team: "web", tier: "front" };

const SELECTORS: readonly (readonly [boolean, LabelSelector])[] = [
  [true, {}],
  [true, { matchLabels: { team: "web", tier: "front" } }],
  [false, { matchLabels: { team: "web", tier: "back" } }],
  [true, { matchExpressions: [{ key: "team", operator: "In", values: ["api", "web"] }] }],
  [false, { matchExpressions: [{ key: "team", operator: "In", values: ["api"] }] }],
  [false, { matchExpressions: [{ key: "other", operator: "In", values: ["api"] }] }],
  [true, { matchExpressions: [{ key: "team", operator: "NotIn", values: ["api"] }] }],
  [false, { matchExpressions: [{ key: "team", operator: "NotIn", values: ["web"] }] }],
  [true, { matchExpressions: [{ key: "other", operator: "NotIn", values: ["web"] }] }],
  [true, { matchExpressions: [{ key: "team", operator: "Exists" }] }],
  [false, { matchExpressions: [{ key: "other", operator: "Exists" }] }],
  [false, { matchExpressions: [{ key: "team", operator: "DoesNotExist" }] }],
  [true, { matchExpressions: [{ key: "other", operator: "DoesNotExist" }] }],
  // A label can have the name of a property that all objects of JavaScript have.
  [false, { matchExpressions: [{ key: "constructor", operator: "Exists" }] }],
  [false, { matchLabels: { team: "web" }, matchExpressions: [{ key: "tier", operator: "DoesNotExist" }] }],
];

for (const [expected, selector] of SELECTORS)
  test(`${JSON.stringify(selector)} ${expected ? "selects" : "does not select"} the labels`, () => {
    assert.equal(matchesLabels(selector, LABELS), expected);
  });

test("namespaces are allowed as `from` says, by default the same only", () => {
  const graph = new Graph();
  graph.set({ apiVersion: "v1", kind: "Namespace", metadata: { name: "team", namespace: "", labels: LABELS } });
  const allowed = (namespaces: NamespacesFrom): readonly string[] =>
    graph.query(
      defineQuery("allowed", (read) =>
        ["own", "team", "unknown"].filter((each) => isFromAllowed(read, namespaces, "own", each)),
      ),
      "",
    );
  assert.deepEqual(allowed({}), ["own"]);
  assert.deepEqual(allowed({ from: "Same" }), ["own"]);
  assert.deepEqual(allowed({ from: "All" }), ["own", "team", "unknown"]);
  assert.deepEqual(allowed({ from: "None" }), []);
  assert.deepEqual(allowed({ from: "Selector", selector: { matchLabels: { team: "web" } } }), ["team"]);
  assert.deepEqual(allowed({ from: "Selector" }), []);
});
