import assert from "node:assert/strict";
import { test } from "node:test";
import type { PolicySet } from "../ir/policies.ts";
import { sensitiveHeaders } from "../trace/redaction.ts";
import { compilePolicies, NO_POLICIES, stageName } from "./compile.ts";
import { REQUEST_ORDER, RESPONSE_ORDER } from "./order.ts";
import { REGISTRY } from "./registry.ts";
import { DEPS } from "./testing/context.ts";

const PHASES = ["gateway", "route", "backend"] as const;
/** Configured in an order that is not theirs. */
const SOME: PolicySet = {
  directResponse: { status: 200 },
  requestRedirect: { scheme: "https" },
  urlRewrite: { path: { full: "/" } },
  responseHeaderModifier: { remove: ["server"] },
  requestHeaderModifier: { set: { authorization: "Bearer s3cret", "x-tenant": "t" } },
  timeout: { requestTimeout: 1000 },
  cors: { allowOrigins: ["*"], allowMethods: [], allowHeaders: [], exposeHeaders: [], allowCredentials: false },
  csrf: { additionalOrigins: [] },
  localRateLimit: [{ maxTokens: 1, tokensPerFill: 1, fillInterval: 1000, type: "requests" }],
  transformations: { request: { set: { "x-a": "'b'" } } },
};
const KEYS = [
  ...[
    "localRateLimit",
    "remoteRateLimit",
    "authorization",
    "jwt",
    "oidc",
    "basicAuth",
    "apiKey",
    "extAuthz",
    "extProc",
  ],
  ...["transformation", "csrf", "directResponse", "requestHeaderModifier", "responseHeaderModifier", "requestRedirect"],
  ...["urlRewrite", "cors"],
];

test("no policies: one shared chain with nothing to run and the keys of the interface", () => {
  for (const phase of PHASES) assert.equal(compilePolicies({}, phase, DEPS, "test"), NO_POLICIES);
  assert.equal(NO_POLICIES.request.length + NO_POLICIES.response.length, 0);
  assert.deepEqual(NO_POLICIES.effective, Object.fromEntries(KEYS.map((key) => [key, null])));
});

test("policies run in the order of the phase, whatever order they are configured in", () => {
  const chain = compilePolicies(SOME, "route", DEPS, "test");
  const kinds = chain.request.map((policy) => policy.kind);
  assert.deepEqual(
    kinds,
    REQUEST_ORDER.route.filter((kind) => kinds.includes(kind)),
  );
  assert.ok(kinds.length > 6);
  assert.deepEqual(
    chain.response.map((policy) => policy.kind),
    ["responseHeaderModifier"],
  );
});

test("effectivePolicy has the 17 keys always and others when set, with secrets redacted", () => {
  const { effective } = compilePolicies(SOME, "route", DEPS, "test");
  assert.deepEqual(Object.keys(effective), [...KEYS, "timeout"]);
  assert.deepEqual(effective.requestHeaderModifier, { set: { authorization: "<redacted>", "x-tenant": "t" } });
  assert.deepEqual(effective.directResponse, { status: 200 });
  assert.equal(effective.oidc, null);
});

test("values of headers that the administrator calls sensitive are redacted too", () => {
  const { effective } = compilePolicies(
    { requestHeaderModifier: { set: { authorization: "Bearer s3cret", "x-tenant": "t" } } },
    "backend",
    { ...DEPS, hidden: sensitiveHeaders(["X-Tenant"]) },
    "test",
  );
  assert.deepEqual(effective.requestHeaderModifier, {
    set: { authorization: "<redacted>", "x-tenant": "<redacted>" },
  });
});

test("a policy in a phase where it cannot run is an error", () => {
  assert.throws(
    () => compilePolicies({ urlRewrite: {} }, "backend", DEPS, "test"),
    /^Error: urlRewrite: cannot run in the backend phase; attach it where the phase is route$/,
  );
  assert.throws(
    () => compilePolicies({ timeout: {} }, "gateway", DEPS, "test"),
    /timeout: cannot run in the gateway phase/,
  );
});

test("what order.ts places, the registry allows there", () => {
  for (const phase of PHASES)
    for (const kind of [...REQUEST_ORDER[phase], ...RESPONSE_ORDER[phase]])
      assert.ok(REGISTRY[kind].phases.includes(phase), `${kind} in the ${phase} phase`);
});

test("stages are named after policy and phase", () => {
  assert.equal(stageName("requestHeaderModifier", "route"), "request header modifier");
  assert.equal(stageName("requestHeaderModifier", "backend"), "backend request header modifier");
  assert.equal(stageName("urlRewrite", "route"), "url rewrite");
  assert.equal(stageName("requestRedirect", "route"), "request redirect");
  assert.equal(stageName("directResponse", "route"), "direct response");
  assert.equal(stageName("responseHeaderModifier", "backend"), "backend response header modifier");
});
