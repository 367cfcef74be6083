import assert from "node:assert/strict";
import { test } from "node:test";
import { ms } from "../base/durations.ts";
import { EFFECTIVE_NAMES } from "../trace/policy-kinds.ts";
import { redactPolicies } from "./calls/redact.ts";
import { traceKeyOf } from "./compile.ts";
import { kindsOf } from "./merge.ts";
import { REGISTRY, redactPolicy } from "./registry.ts";
import type { BackendAuth } from "./schema/backend-auth.ts";

const NONE: ReadonlySet<string> = new Set();

test("an unknown kind is redacted as a whole, alternatives included", () => {
  const secret = { password: "s3cret" };
  for (const config of [secret, { conditional: [secret] }, "s3cret", [secret]])
    assert.equal(redactPolicy("newAuth", config, NONE), "<redacted>");
  for (const name of ["constructor", "toString", "__proto__"])
    assert.equal(redactPolicy(name, secret, NONE), "<redacted>");
});

test("only known kinds among the policies of a call are shown", () => {
  const backendAuth: BackendAuth = {
    key: { value: "s3cret", location: { header: { name: "authorization", prefix: "" } } },
    credentials: [],
  };
  const policies = { backendAuth, http: { requestTimeout: ms(5) }, newAuth: { password: "s3cret" } };
  const redacted = redactPolicies({ target: { type: "unix", path: "/s" }, policies }, NONE);
  assert.ok(!JSON.stringify(redacted).includes("s3cret"));
  assert.deepEqual(Object.keys(redacted.policies ?? {}), ["backendAuth", "http"]);
});

test("the events of a policy lead to its name in effectivePolicy", () => {
  for (const kind of kindsOf(REGISTRY))
    assert.equal(EFFECTIVE_NAMES[REGISTRY[kind].decisions.kind], traceKeyOf(kind), kind);
});
