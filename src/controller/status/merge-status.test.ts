import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "../../kube/objects.ts";
import type { ConditionDraft } from "../translate/model/model.ts";
import type { DesiredStatus, StatusBody } from "./desired.ts";
import { type StatusChange, statusChange } from "./merge-status.ts";

const OURS = "tracegate.dev/gateway-controller";
const THEIRS = "example.com/other";
const BEFORE = "2026-01-01T00:00:00Z";
const NOW = "2026-01-02T03:04:05Z";
const WEB = { group: "gateway.networking.k8s.io", kind: "Gateway", name: "web" };

const accepted: ConditionDraft = { type: "Accepted", status: "True", reason: "Accepted", message: "" };
const refused: ConditionDraft = { type: "Accepted", status: "False", reason: "NoMatchingParent", message: "none" };
const dated = (draft: ConditionDraft, lastTransitionTime: string, observedGeneration = 1) => ({
  ...draft,
  observedGeneration,
  lastTransitionTime,
});

function desired(status: StatusBody, generation = 1): DesiredStatus {
  return { kind: "HTTPRoute", key: "apps/route", generation, status };
}

function live(status: unknown): KubeObject {
  return {
    apiVersion: "v1",
    kind: "HTTPRoute",
    metadata: { name: "route", namespace: "apps" },
    ...{ status },
  };
}

function listOf(written: StatusChange | undefined, field: string): readonly unknown[] {
  const list = written?.status[field];
  assert.ok(Array.isArray(list));
  return list;
}

function change(status: StatusBody, before: unknown, generation = 1): StatusChange | undefined {
  return statusChange(desired(status, generation), live(before), OURS, NOW);
}

test("a new route gets its parents with generation and time", () => {
  assert.deepEqual(change({ parents: [{ parentRef: { name: "web" }, conditions: [accepted] }] }, undefined, 7), {
    status: { parents: [{ parentRef: WEB, controllerName: OURS, conditions: [dated(accepted, NOW, 7)] }] },
    shared: true,
  });
});

test("nothing is written when only the time would differ", () => {
  const before = { parents: [{ parentRef: WEB, controllerName: OURS, conditions: [dated(accepted, BEFORE)] }] };
  assert.equal(change({ parents: [{ parentRef: { name: "web" }, conditions: [accepted] }] }, before), undefined);
});

test("the time changes with the status, not with generation, reason or message", () => {
  const before = { conditions: [dated(accepted, BEFORE)] };
  const reworded = { ...accepted, message: "all is well" };
  assert.deepEqual(change({ conditions: [reworded] }, before, 2)?.status, {
    conditions: [dated(reworded, BEFORE, 2)],
  });
  assert.deepEqual(change({ conditions: [refused] }, before)?.status, { conditions: [dated(refused, NOW)] });
});

test("parents of other controllers stay, in any position", () => {
  const theirs = { parentRef: WEB, controllerName: THEIRS, conditions: [dated(refused, BEFORE)] };
  const ours = { parentRef: WEB, controllerName: OURS, conditions: [dated(accepted, BEFORE)] };
  const wanted: StatusBody = { parents: [{ parentRef: { name: "web" }, conditions: [accepted] }] };
  assert.equal(change(wanted, { parents: [ours, theirs] }), undefined);
  assert.equal(change(wanted, { parents: [theirs, ours] }), undefined);
  assert.deepEqual(change({ parents: [] }, { parents: [ours, theirs] })?.status, { parents: [theirs] });
  assert.deepEqual(change(wanted, { parents: [theirs] })?.status.parents, [
    theirs,
    { ...ours, conditions: [dated(accepted, NOW)] },
  ]);
});

test("two parents of one route are distinguished by section", () => {
  const at = (sectionName: string) => ({ ...WEB, sectionName });
  const before = {
    parents: [
      { parentRef: at("a"), controllerName: OURS, conditions: [dated(accepted, BEFORE)] },
      { parentRef: at("b"), controllerName: OURS, conditions: [dated(refused, BEFORE)] },
    ],
  };
  const wanted: StatusBody = {
    parents: [
      { parentRef: at("b"), conditions: [refused] },
      { parentRef: at("a"), conditions: [accepted] },
    ],
  };
  assert.deepEqual(change(wanted, before)?.status.parents, [before.parents[1], before.parents[0]]);
});

test("lists keep to the sizes that the API server accepts", () => {
  const many = Array.from({ length: 40 }, (_, i) => ({ name: `gateway${i}` }));
  const parents = change({ parents: many.map((parentRef) => ({ parentRef, conditions: [] })) }, undefined);
  assert.equal(listOf(parents, "parents").length, 32);
  const theirs = { ancestorRef: WEB, controllerName: THEIRS, conditions: [] };
  const ancestors = change(
    { ancestors: many.map((ancestorRef) => ({ ancestorRef, conditions: [] })) },
    { ancestors: [theirs] },
  );
  assert.equal(listOf(ancestors, "ancestors").length, 16);
  assert.deepEqual(listOf(ancestors, "ancestors")[0], theirs);
});

test("a Gateway: only fields that differ are written, and former addresses are removed", () => {
  const listener = {
    name: "http",
    supportedKinds: [{ kind: "HTTPRoute" }],
    attachedRoutes: 1,
    conditions: [accepted],
  };
  const stored = {
    name: "http",
    supportedKinds: [{ group: "gateway.networking.k8s.io", kind: "HTTPRoute" }],
    attachedRoutes: 1,
    conditions: [dated(accepted, BEFORE)],
  };
  const address = { type: "IPAddress", value: "203.0.113.1" };
  const before = { conditions: [dated(accepted, BEFORE)], listeners: [stored], addresses: [address] };
  const wanted = { conditions: [accepted], listeners: [listener], addresses: [address] };
  assert.equal(change(wanted, before), undefined);
  assert.deepEqual(change({ ...wanted, listeners: [{ ...listener, attachedRoutes: 2 }] }, before), {
    status: { listeners: [{ ...stored, attachedRoutes: 2 }] },
    shared: false,
  });
  const { addresses: _, ...without } = wanted;
  assert.deepEqual(change(without, before)?.status, { addresses: null });
});

test("messages are truncated to what the API server accepts", () => {
  const long = { ...refused, message: "x".repeat(40_000) };
  const [condition] = listOf(change({ conditions: [long] }, undefined), "conditions");
  assert.deepEqual(condition, dated({ ...refused, message: "x".repeat(32_768) }, NOW));
});
