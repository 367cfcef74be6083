import assert from "node:assert/strict";
import { test } from "node:test";
import type { Ingress } from "../kube/objects.ts";
import { IngressEvents } from "./ingress-events.ts";

test("a problem is reported once, again while it lasts, and again after it has been away", () => {
  const reported: string[] = [];
  let now = 0;
  const recorder = {
    record: async (_object: unknown, { message }: { readonly message: string }) => void reported.push(message),
  };
  const ingress = { kind: "Ingress", metadata: { name: "web", namespace: "apps", uid: "1" } } as Ingress;
  const events = new IngressEvents(
    recorder,
    () => ingress,
    () => now,
  );
  const problems = (...messages: readonly string[]) =>
    new Map([["apps/web", messages.map((message) => ({ reason: "Reason", message }))]]);
  events.update(problems("one"));
  events.update(problems("one", "two"));
  assert.deepEqual(reported.splice(0), ["one", "two"]);
  now = 44 * 60_000;
  events.update(problems("one", "two"));
  assert.deepEqual(reported.splice(0), []);
  now = 46 * 60_000;
  events.update(problems("one", "two"));
  assert.deepEqual(reported.splice(0), ["one", "two"]);
  events.update(new Map());
  events.update(problems("one"));
  assert.deepEqual(reported, ["one"]);
});
