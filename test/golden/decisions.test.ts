/**
 * `decisions.txt`: the text of every decision that a policy can make, as traces, the tree of steps and the access log show it, and below
 * it the data for programs. The types require a sample for each code. UPDATE_GOLDEN=1 writes the file.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { ms } from "../../src/base/durations.ts";
import { apiKey } from "../../src/policies/api-key/index.ts";
import { authorization } from "../../src/policies/authorization/index.ts";
import { backendAuth } from "../../src/policies/backend-auth/index.ts";
import { basicAuth } from "../../src/policies/basic-auth/index.ts";
import { buffer } from "../../src/policies/buffer/index.ts";
import { compression } from "../../src/policies/compression/index.ts";
import { concurrencyLimit } from "../../src/policies/concurrency-limit/index.ts";
import { type Decision, Decisions, type WithCode } from "../../src/policies/contract/decisions.ts";
import { cors } from "../../src/policies/cors/index.ts";
import { csrf } from "../../src/policies/csrf/index.ts";
import { CHOICE_TEXTS } from "../../src/policies/define/conditional.ts";
import { delay } from "../../src/policies/delay/index.ts";
import { directResponse } from "../../src/policies/direct-response/index.ts";
import { errorPages } from "../../src/policies/error-pages/index.ts";
import { extAuthz } from "../../src/policies/ext-authz/index.ts";
import { extProc } from "../../src/policies/ext-proc/index.ts";
import { grpcWeb } from "../../src/policies/grpc-web/index.ts";
import { ipAccess } from "../../src/policies/ip-access/index.ts";
import { jwtAuth } from "../../src/policies/jwt-auth/index.ts";
import { localRateLimit } from "../../src/policies/local-rate-limit/index.ts";
import { maxRequestBodySize } from "../../src/policies/max-request-body-size/index.ts";
import { LoginError } from "../../src/policies/oidc/failure.ts";
import { oidc } from "../../src/policies/oidc/index.ts";
import type { RequestPolicyKind } from "../../src/policies/policy-set.ts";
import { remoteRateLimit } from "../../src/policies/remote-rate-limit/index.ts";
import { requestHeaderModifier } from "../../src/policies/request-header-modifier/index.ts";
import { requestMirror } from "../../src/policies/request-mirror/index.ts";
import { requestRedirect } from "../../src/policies/request-redirect/index.ts";
import { responseHeaderModifier } from "../../src/policies/response-header-modifier/index.ts";
import { retry } from "../../src/policies/retry/index.ts";
import { satisfy } from "../../src/policies/satisfy/index.ts";
import { sessionPersistence } from "../../src/policies/session-persistence/index.ts";
import { timeout } from "../../src/policies/timeout/index.ts";
import { transformations } from "../../src/policies/transformations/index.ts";
import { urlRewrite } from "../../src/policies/url-rewrite/index.ts";
import { AFFINITY, HEALTH, RETRY } from "../../src/proxy/trace/decisions.ts";

type Samples<All extends Decision> = {
  readonly [Code in All["code"]]: readonly Omit<WithCode<All, Code>, "code">[];
};

/** The decisions with their texts, in the order of `samples`. */
function texts<All extends Decision>(decisions: Decisions<All>, samples: Samples<All>): string {
  const lines = Object.entries<readonly object[]>(samples).flatMap(([code, each]) => {
    assert.ok(each.length > 0, `${decisions.kind} ${code} has no sample`);
    return each.map((values) => {
      const { effect, text, data } = decisions.tell({ code, ...values } as unknown as All);
      assert.ok(text !== "" && !/undefined|\[object|NaN/.test(text), `${code}: ${text}`);
      return `  ${code} (${effect})  ${text}\n${data === undefined ? "" : `      ${JSON.stringify(data)}\n`}`;
    });
  });
  return `${decisions.kind}\n${lines.join("")}`;
}

const bodyUnknown = [{ maxBufferSize: 1024 }];
const invalidTarget = [{ name: ":scheme", why: '"ftp" is not http or https' }];
const place = 'the header authorization after "Bearer "';
const origin = "https://shop.example";
const why = "connect ECONNREFUSED 10.0.0.1:9000";
const nothing = [{}];
const problem = [{ why: undefined }, { why: 'unexpected "iss" claim value' }];
const limit = { maxTokens: 5, tokensPerFill: 1, fillInterval: ms(1000), type: "requests", shadow: false } as const;
const endpoint = "10.0.0.1:80";

const unsatisfied = [
  {
    kind: "apiKey",
    what: "missing",
    error: () => apiKey.decisions.reject(undefined, { code: "missing", mode: "strict", place }, "TG_API_KEY_MISSING"),
  },
  {
    kind: "oidc",
    what: "unchecked",
    error: () => new LoginError("unreachable"),
  },
] as const;

const POLICIES: Readonly<Record<RequestPolicyKind, string>> = {
  apiKey: texts(apiKey.decisions, {
    valid: nothing,
    missing: [
      { mode: "strict", place },
      { mode: "optional", place },
    ],
    unknown: [
      { mode: "strict", place },
      { mode: "permissive", place },
    ],
  }),
  authorization: texts(authorization.decisions, {
    noAllow: nothing,
    rule: [
      { result: { mode: "deny", matched: true, inputs: { "request.path": "/admin" } }, index: 2 },
      { result: { mode: "deny", matched: false, error: "", inputs: { "jwt.sub": null } }, index: 0 },
      { result: { mode: "require", matched: false }, index: 1 },
    ],
  }),
  backendAuth: texts(backendAuth.decisions, {
    added: [
      { location: { header: { name: "authorization", prefix: "Bearer " } } },
      { location: { cookie: { name: "s" } } },
    ],
  }),
  basicAuth: texts(basicAuth.decisions, {
    valid: nothing,
    busy: nothing,
    missing: [
      { mode: "strict", place },
      { mode: "optional", place },
    ],
    malformed: [{ place }],
    wrong: [{ place }],
  }),
  buffer: texts(buffer.decisions, {
    held: [{ side: "request", bytes: 5 }],
    tooLong: [
      { side: "request", limit: 10, failureMode: "failClosed" },
      { side: "response", limit: 10, failureMode: "failOpen" },
    ],
  }),
  compression: texts(compression.decisions, {
    noContent: nothing,
    partial: nothing,
    contentType: [{ contentType: "image/png" }, { contentType: undefined }],
    encoded: nothing,
    noTransform: nothing,
    digest: nothing,
    short: [{ length: 9, minSize: 1024 }],
    notAccepted: nothing,
    busy: nothing,
    compressed: [{ coding: "gzip", level: 5 }],
  }),
  concurrencyLimit: texts(concurrencyLimit.decisions, {
    admitted: [{ limit: { maxRequests: 4 }, count: 1 }],
    limited: [{ limit: { maxRequests: 4, key: "source.address" }, count: 4 }],
  }),
  cors: texts(cors.decisions, {
    noOrigin: nothing,
    assumed: nothing,
    allowed: [
      { origin, preflight: false },
      { origin, preflight: true },
    ],
    foreign: [
      { origin, preflight: false },
      { origin, preflight: true },
    ],
  }),
  csrf: texts(csrf.decisions, {
    safe: [{ method: "GET" }],
    allowed: [
      { site: "same-origin", origin: undefined },
      { site: "cross-site", origin },
      { site: undefined, origin: undefined },
    ],
    repeated: [{ header: "origin" }],
    opaque: nothing,
    assumed: [{ trusted: true }, { trusted: false }],
    foreign: [
      { site: "cross-site", origin },
      { site: undefined, origin },
      { site: "cross-site", origin: undefined },
    ],
  }),
  delay: texts(delay.decisions, { none: nothing, unknown: nothing, waits: [{ time: 250 }], bodyUnknown }),
  directResponse: texts(directResponse.decisions, { responds: [{ status: 404, bytes: 9 }] }),
  errorPages: texts(errorPages.decisions, {
    page: [
      { status: 503, entry: 0, form: "html", bytes: 1234, failures: [] },
      { status: 404, entry: 2, form: "json", bytes: 80, failures: ["jwt.sub: jwt is null"] },
    ],
    noPage: [{ status: 200, source: "backend" }],
    kept: [{ status: 503, source: "policy" }],
    unaccepted: nothing,
    grpc: nothing,
  }),
  extAuthz: texts(extAuthz.decisions, {
    allowed: [{ cached: false }, { cached: true }],
    denied: [
      { cached: false, status: 403 },
      { cached: true, status: 401 },
    ],
    failed: [
      { why, continues: false },
      { why, continues: true },
    ],
    bodyTooLong: [{ limit: 1024 }],
    invalidTarget,
  }),
  extProc: texts(extProc.decisions, {
    processed: [{ side: "request" }],
    immediate: [{ side: "response", status: 302 }],
    denied: [
      { side: "request", status: 403 },
      { side: "request", status: 403, grpcStatus: 7 },
    ],
    failed: [
      { side: "request", failure: { code: "timeout" }, continues: false },
      { side: "request", failure: { code: "ended" }, continues: true },
      { side: "response", failure: { code: "unexpected" }, continues: false },
      { side: "response", failure: { code: "unreadable", why: "premature EOF" }, continues: false },
      { side: "request", failure: { code: "call", why }, continues: true },
      { side: "response", failure: { code: "bodyTooLong", limit: 1024 }, continues: true },
    ],
    routeStays: nothing,
    timeoutIgnored: [{ ms: 60_000, max: 2000 }],
    timeoutExtended: [{ ms: 500, part: "requestHeaders" }],
    invalidTarget,
  }),
  grpcWeb: texts(grpcWeb.decisions, { otherCall: nothing, translated: [{ request: "text", response: "binary" }] }),
  ipAccess: texts(ipAccess.decisions, {
    allowed: [
      { address: "192.0.2.7", network: "192.0.2.0/24" },
      { address: "192.0.2.7", network: undefined },
    ],
    denied: [{ address: "192.0.2.7", network: "192.0.2.0/24" }],
    notAllowed: [{ address: "192.0.2.7" }],
    noAddress: [{ address: "unknown" }],
    assumed: [{ allowed: true }, { allowed: false }],
  }),
  jwtAuth: texts(jwtAuth.decisions, {
    valid: nothing,
    missing: [
      { mode: "strict", place },
      { mode: "optional", place },
    ],
    noKeyId: [{ mode: "strict" }],
    unknownKey: [
      { mode: "strict", kid: "2024-1" },
      { mode: "permissive", kid: "2024-1" },
    ],
    keysNotFetched: [{ mode: "strict", issuer: "https://issuer.example" }],
    invalidToken: [
      { mode: "strict", fault: { code: "expired", at: 1_800_000_000 } },
      { mode: "strict", fault: { code: "notYetValid", at: 1e300 } },
      { mode: "permissive", fault: { code: "missingClaim", claim: "sub" } },
      { mode: "strict", fault: { code: "wrongClaim", claim: "aud", value: '["a"]' } },
      { mode: "strict", fault: { code: "signature" } },
      { mode: "strict", fault: { code: "assumed" } },
      { mode: "strict", fault: { code: "unverifiable" } },
      { mode: "strict", fault: { code: "malformed" } },
      { mode: "strict", fault: { code: "notNumber", claim: "nbf" } },
      { mode: "strict", fault: { code: "algorithm", algorithm: '"HS256"' } },
      { mode: "strict", fault: { code: "algorithm", algorithm: undefined } },
      { mode: "strict", fault: { code: "extension" } },
    ],
  }),
  localRateLimit: texts(localRateLimit.decisions, {
    admitted: [{ limit, remaining: 3 }],
    limited: [
      { limit, untilFill: 400 },
      { limit: { ...limit, tokensPerFill: 0, key: "source.address" }, untilFill: 0 },
    ],
  }),
  maxRequestBodySize: texts(maxRequestBodySize.decisions, {
    noBody: nothing,
    limits: [{ limit: 1000 }],
    announced: [{ limit: 1000, bytes: 1001 }],
    exceeded: [{ limit: 1000 }],
  }),
  oidc: texts(oidc.decisions, {
    session: [{ expires: 1_800_000_000 }],
    rehearsed: [{ expires: 1_800_000_000 }],
    assumed: nothing,
    renewed: [{ expires: 1_800_000_000 }],
    kept: [{ expires: 1_800_000_000, why: "the token endpoint said invalid_grant" }],
    notRenewed: [{ why }],
    loggedOut: [
      { had: true, atProvider: true },
      { had: false, atProvider: false },
    ],
    askLogout: nothing,
    providerLogout: [{ ended: "session" }, { ended: "user" }, { ended: "known" }],
    preflight: nothing,
    notFetched: nothing,
    loggedIn: nothing,
    refused: [{ session: "missing" }, { session: "expired" }, { session: "idle" }, { session: "revoked" }],
    noSession: [{ session: "missing" }],
    login: [{ session: "missing" }, { session: "invalid" }, { session: "lapsed" }, { session: "ended" }],
    authenticationRequired: problem,
    invalidCallback: problem,
    missingTransaction: problem,
    invalidTransaction: problem,
    csrfMismatch: problem,
    nonceMismatch: problem,
    codeRejected: problem,
    providerError: [{ why: "access_denied" }],
    invalidIdToken: problem,
    missingIdToken: problem,
    refreshRefused: problem,
    foreignLogout: problem,
    invalidLogoutToken: problem,
    revocationsFull: problem,
    cookieTooLarge: [{ why: "25000 bytes, at most 18998 are allowed" }],
    exchangeRefused: problem,
    exchangeFailed: problem,
    unreachable: [{ why }],
  }),
  remoteRateLimit: texts(remoteRateLimit.decisions, {
    noDescriptor: nothing,
    descriptorLeftOut: [{ why: "no such key: x-user" }],
    descriptorFailed: [{ why: "no such overload" }],
    failed: [
      { why, continues: false },
      { why, continues: true },
    ],
    allowed: [{ descriptors: 2 }],
    limited: [{ descriptors: 1 }],
    invalidTarget,
  }),
  requestHeaderModifier: texts(requestHeaderModifier.decisions, {
    modified: [{ modifier: { set: { "x-a": "1" }, remove: ["x-b"] } }],
  }),
  requestMirror: texts(requestMirror.decisions, {
    copied: [
      { copies: 1, targets: 2 },
      { copies: 0, targets: 1 },
    ],
  }),
  requestRedirect: texts(requestRedirect.decisions, { redirects: [{ location: `${origin}/`, status: 301 }] }),
  responseHeaderModifier: texts(responseHeaderModifier.decisions, {
    modified: [{ modifier: { add: { "x-a": "1" } } }],
  }),
  retry: texts(retry.decisions, { notMet: nothing, bodyUnknown }),
  satisfy: texts(satisfy.decisions, {
    satisfied: [{ kind: "apiKey", position: 2, of: 3 }],
    none: [{ failures: unsatisfied }],
    login: [{ failures: unsatisfied }],
    preflight: nothing,
    unchecked: [{ failures: unsatisfied }],
  }),
  sessionPersistence: texts(sessionPersistence.decisions, {
    none: nothing,
    expired: nothing,
    invalid: nothing,
    kept: [{ endpoint }],
    endpointGone: [{ endpoint }],
    issued: [{ endpoint }],
    renewed: [{ endpoint }],
  }),
  timeout: texts(timeout.decisions, { set: [{ timeouts: { requestTimeout: "1s" } }] }),
  transformations: texts(transformations.decisions, {
    changed: [{ side: "request", failures: undefined }],
    partly: [{ side: "response", failures: ["set.x-a: no such key: x", "body: division by zero"] }],
  }),
  urlRewrite: texts(urlRewrite.decisions, { rewritten: [{ change: { path: { prefix: "/" } } }] }),
};

const OTHERS = [
  texts(new Decisions("extAuthz", CHOICE_TEXTS), {
    met: nothing,
    fallback: nothing,
    notMet: nothing,
    failed: [{ why: "no such key: x" }],
  }),
  texts(RETRY, {
    limit: [{ max: 3 }],
    budget: nothing,
    pushback: nothing,
    notIdempotent: [{ method: "POST" }],
    again: [
      { attempt: 1, reason: { code: "status", status: 503 }, delay: 25.4 },
      { attempt: 1, reason: { code: "grpcStatus", grpcStatus: 14 }, delay: 0 },
      { attempt: 1, reason: { code: "condition" }, delay: 0 },
      { attempt: 1, reason: { code: "failure", error: "TG_UPSTREAM_TIMEOUT", detail: undefined }, delay: 0 },
      {
        attempt: 2,
        reason: { code: "failure", error: "TG_UPSTREAM_FAILED", detail: "connect ECONNREFUSED 10.0.0.1:80" },
        delay: 0,
        backend: "default/b",
        onlyEndpoint: endpoint,
      },
    ],
  }),
  texts(HEALTH, {
    leftOut: [
      { endpoint, leftOut: ["10.0.0.2:80: evicted for 3s"] },
      {
        endpoint,
        leftOut: ["10.0.0.2:80: evicted for 3s"],
        order: "no endpoint that comes first takes requests",
      },
    ],
    noneHealthy: [{ endpoint, leftOut: [], noneHealthy: "evicted for 3s" }],
    evicted: [{ endpoint, evictedFor: 3000.2, consecutiveFailures: 5 }],
  }),
  texts(AFFINITY, { bodyUnknown }),
];

test("every decision has its text", () => {
  const text = [...Object.values(POLICIES), ...OTHERS].join("\n");
  const path = new URL("decisions.txt", import.meta.url);
  if (process.env.UPDATE_GOLDEN !== undefined) writeFileSync(path, text);
  assert.equal(text, readFileSync(path, "utf8"));
});
