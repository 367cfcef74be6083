import assert from "node:assert/strict";
import { test } from "node:test";
import { directResponse } from "../direct-response/index.ts";
import type { DirectResponse } from "../direct-response/schema.ts";
import type { Conditional } from "../schema/conditional.ts";
import type { Transformations } from "../schema/transformations.ts";
import { contextOf, creatorOf, DEPS, RecordedTrace } from "../testing/context.ts";
import { transformations } from "../transformations/index.ts";

const answer = creatorOf(directResponse);
const transform = creatorOf(transformations);

const LIST: Conditional<DirectResponse> = {
  conditional: [
    { condition: 'request.headers["x-a"] == "1"', status: 201 },
    { condition: 'request.method == "PUT"', status: 202 },
    { status: 203 },
  ],
};

function statusOf(config: Conditional<DirectResponse>, method: string, headers: string[]): number | undefined {
  const outcome = answer(config, DEPS).onRequest?.(contextOf({ method, headers }));
  assert.ok(!(outcome instanceof Promise));
  return outcome?.status;
}

test("the first entry whose condition is true applies, else the one without; an absent value makes a condition false", () => {
  assert.equal(statusOf(LIST, "PUT", ["x-a", "1"]), 201);
  assert.equal(statusOf(LIST, "PUT", []), 202);
  assert.equal(statusOf(LIST, "GET", ["x-a", "2"]), 203);
  assert.equal(statusOf({ conditional: LIST.conditional.slice(0, 2) }, "GET", []), undefined);
});

test("a policy without conditions is unchanged", () => {
  const outcome = answer({ status: 204 }, DEPS).onRequest?.(contextOf());
  assert.deepEqual(outcome, { status: 204, headers: [], body: "" });
});

test("the response follows the choice of the request, or is chosen itself if the request never reached the policy", () => {
  const set = (value: string): Transformations => ({ response: { set: { "x-chosen": `'${value}'` } } });
  const policy = transform(
    { conditional: [{ condition: 'request.method == "PUT"', ...set("put") }, set("other")] },
    DEPS,
  );
  const context = contextOf({ method: "PUT" });
  policy.onRequest?.(context);
  context.request.method = "GET";
  const response = { status: 200, headers: [] as string[] };
  policy.onResponse?.(context, response);
  assert.deepEqual(response.headers, ["x-chosen", "put"]);
  const rejected = { status: 403, headers: [] as string[] };
  policy.onResponse?.(contextOf(), rejected);
  assert.deepEqual(rejected.headers, ["x-chosen", "other"]);
});

test("a condition over the body waits for it", async () => {
  const policy = answer({ conditional: [{ condition: "size(request.body) > 3", status: 200 }] }, DEPS);
  assert.equal((await policy.onRequest?.(contextOf({}, { body: "abcd" })))?.status, 200);
  assert.equal(await policy.onRequest?.(contextOf({}, { body: "abc" })), undefined);
});

test("says which entries were passed over", () => {
  const trace = new RecordedTrace();
  answer(LIST, DEPS).onRequest?.(contextOf({ method: "PUT" }, { trace }));
  answer(LIST, DEPS).onRequest?.(contextOf({}, { trace }));
  const skipped = { kind: "directResponse", reason: "condition not met, skipping policy" };
  assert.deepEqual(trace.events, [
    skipped,
    { kind: "directResponse", details: "condition met, applying policy" },
    { kind: "direct_response", details: { status: 202, bytes: 0 } },
    skipped,
    skipped,
    { kind: "directResponse", details: "fallback met, applying policy" },
    { kind: "direct_response", details: { status: 203, bytes: 0 } },
  ]);
});

test("shows each entry with its condition", () => {
  const config = { conditional: [{ condition: "true", status: 200 }, { status: 201 }] };
  assert.deepEqual(directResponse.traceView(config, DEPS.hidden), [
    { pol: { status: 200 }, condition: "true" },
    { pol: { status: 201 } },
  ]);
});

test("invalid entries are rejected with their place", () => {
  assert.throws(
    () => answer({ conditional: [{ status: 200 }, { condition: "true", status: 200 }] }, DEPS),
    /directResponse.conditional.0: the entries after one without condition never apply/,
  );
  assert.throws(
    () => answer({ conditional: [{ condition: "true", status: 99 }] }, DEPS),
    /^Error: directResponse.conditional.0.status: 99 is not a status/,
  );
});
