import assert from "node:assert/strict";
import { test } from "node:test";
import { ms } from "../base/durations.ts";
import { sensitiveHeaders } from "../trace/redaction.ts";
import { compilePolicies, NO_POLICIES, stageName } from "./compile.ts";
import { REQUEST_ORDER, RESPONSE_ORDER } from "./order.ts";
import type { PolicySet } from "./policy-set.ts";
import { REGISTRY } from "./registry.ts";
import { DEPS } from "./testing/context.ts";

const PHASES = ["gateway", "route", "backend"] as const;
const SOME: PolicySet = {
  directResponse: { status: 200 },
  requestRedirect: { scheme: "https" },
  urlRewrite: { path: { full: "/" } },
  responseHeaderModifier: { remove: ["server"] },
  requestHeaderModifier: { set: { authorization: "Bearer s3cret", "x-tenant": "t" } },
  timeout: { requestTimeout: ms(1000) },
  cors: { allowOrigins: ["*"], allowMethods: [], allowHeaders: [], exposeHeaders: [], allowCredentials: false },
  csrf: { additionalOrigins: [] },
  localRateLimit: [{ maxTokens: 1, tokensPerFill: 1, fillInterval: ms(1000), type: "requests" }],
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

const TARGET = { type: "static", host: "127.0.0.1", port: 9 } as const;
const LOCATION = { header: { name: "authorization", prefix: "" } };
const EXT_AUTHZ: PolicySet["extAuthz"] = {
  target: TARGET,
  protocol: { grpc: {} },
  failureMode: "deny",
  includeRequestHeaders: [],
  timeout: ms(1000),
};
const EXT_PROC: PolicySet["extProc"] = {
  target: TARGET,
  failureMode: "failClosed",
  metadataContext: {},
  requestAttributes: {},
  responseAttributes: {},
  processingOptions: {
    requestHeaderMode: "send",
    responseHeaderMode: "send",
    requestBodyMode: "none",
    responseBodyMode: "none",
    requestTrailerMode: "skip",
    responseTrailerMode: "skip",
    allowModeOverride: false,
  },
  timeout: ms(1000),
};
const ADMISSION: PolicySet = {
  authorization: { rules: [{ mode: "allow", expression: "true" }] },
  extAuthz: EXT_AUTHZ,
  apiKey: { keys: [], mode: "optional", location: LOCATION },
  basicAuth: { htpasswd: "", realm: "r", mode: "optional", authorizationLocation: LOCATION },
  jwtAuth: { providers: [], mode: "optional", location: LOCATION },
  ...(SOME.cors !== undefined && { cors: SOME.cors }),
};
const TRANSFORMATIONS: PolicySet = {
  transformations: { request: { set: { "x-a": "'b'" } }, response: { set: { "x-a": "'b'" } } },
};

/** The order of docs/policies/README.md#order, repeated here: what runs first decides what a request has to pass. */
const ORDER: Readonly<Record<(typeof PHASES)[number], { policies: PolicySet; request: string; response: string }>> = {
  gateway: {
    policies: { ...TRANSFORMATIONS, extProc: EXT_PROC, ...ADMISSION },
    request: "cors jwtAuth basicAuth apiKey extAuthz authorization extProc transformations",
    response: "transformations extProc",
  },
  route: {
    policies: {
      requestMirror: [{ target: TARGET, percentage: 1 }],
      directResponse: { status: 200 },
      delay: { duration: "1ms" },
      requestRedirect: { scheme: "https" },
      urlRewrite: { path: { full: "/" } },
      requestHeaderModifier: { set: { "x-tenant": "t" } },
      responseHeaderModifier: { remove: ["server"] },
      csrf: { additionalOrigins: [] },
      ...TRANSFORMATIONS,
      extProc: EXT_PROC,
      buffer: { request: { failureMode: "failClosed" }, response: { failureMode: "failClosed" } },
      remoteRateLimit: {
        target: TARGET,
        domain: "d",
        descriptors: [{ type: "requests" as const, entries: [{ key: "k", value: "'v'" }] }],
        failureMode: "failOpen",
        timeout: ms(1000),
      },
      localRateLimit: [{ maxTokens: 1, tokensPerFill: 1, fillInterval: ms(1000), type: "requests" }],
      retry: { attempts: 1, backoff: ms(0), codes: [] },
      ...ADMISSION,
      timeout: { requestTimeout: ms(1000) },
    },
    request:
      "timeout cors jwtAuth basicAuth apiKey extAuthz authorization retry localRateLimit remoteRateLimit buffer extProc " +
      "transformations csrf requestHeaderModifier urlRewrite requestRedirect delay directResponse requestMirror",
    response: "responseHeaderModifier buffer transformations extProc",
  },
  backend: {
    policies: {
      requestRedirect: { scheme: "https" },
      requestHeaderModifier: { set: { "x-tenant": "t" } },
      responseHeaderModifier: { remove: ["server"] },
      ...TRANSFORMATIONS,
      backendAuth: { key: { value: "k", location: LOCATION }, credentials: [] },
      requestMirror: [{ target: TARGET, percentage: 1 }],
      extAuthz: EXT_AUTHZ,
      authorization: { rules: [{ mode: "allow", expression: "true" }] },
      http: { requestTimeout: ms(1000) },
    },
    request: "authorization extAuthz requestMirror backendAuth transformations requestHeaderModifier requestRedirect",
    response: "responseHeaderModifier transformations",
  },
};

for (const [phase, { policies, request, response }] of Object.entries(ORDER))
  test(`${phase} policies run in their order, whatever order they are configured in`, () => {
    for (const entries of [Object.entries(policies), Object.entries(policies).reverse()]) {
      const chain = compilePolicies(Object.fromEntries(entries), phase as keyof typeof ORDER, DEPS, "test");
      assert.equal(chain.request.map(({ kind }) => kind).join(" "), request);
      assert.equal(chain.response.map(({ kind }) => kind).join(" "), response);
    }
  });

test("effectivePolicy has the 17 keys always and others when set, with secrets redacted", () => {
  const { effective } = compilePolicies(SOME, "route", DEPS, "test");
  assert.deepEqual(Object.keys(effective), [...KEYS, "timeout"]);
  assert.deepEqual(effective.requestHeaderModifier, { set: { authorization: "<redacted>", "x-tenant": "t" } });
  assert.deepEqual(effective.directResponse, { status: 200 });
  assert.equal(effective.oidc, null);
});

test("values of headers that are configured as sensitive are redacted too", () => {
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

test("the registry allows every kind in the phases where order.ts places it", () => {
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
