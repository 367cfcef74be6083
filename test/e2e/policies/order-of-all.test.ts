import assert from "node:assert/strict";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { exportJWK } from "jose";
import { LoginFlow } from "../../../src/policies/oidc/flow.ts";
import type { Oidc } from "../../../src/policies/oidc/schema.ts";
import { DEPS } from "../../../src/policies/testing/context.ts";
import { PROCESS, ProcessingRequest, ProcessingResponse } from "../../helpers/envoy/ext-proc.ts";
import { RateLimitResponse, SHOULD_RATE_LIMIT } from "../../helpers/envoy/rate-limit.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { call, traceOf, Upstream } from "../trace/support.ts";

const HTPASSWD = "alice:{SHA}QYJmB5F+iVrWAUm43BYdcOjb3uU=";

const KEY = randomBytes(32);
const OIDC = {
  issuer: "https://id.example",
  authorizationEndpoint: "https://id.example/auth",
  tokenEndpoint: "https://id.example/token",
  jwks: '{"keys":[]}',
  clientId: "gateway",
  clientSecret: "secret",
  redirectURI: "http://shop.example/back",
};

let upstream: Upstream;
let service: GrpcServer;
let gateway: TestGateway;
/** External services in the order in which they were called. */
const asked: string[] = [];

/** The Cookie value of a client that is logged in. */
function session(): string {
  const config: Oidc = { ...OIDC, tokenEndpointAuth: "clientSecretBasic", callbackNamesIssuer: false, scopes: [] };
  const claims = { sub: "ann", exp: Math.floor(Date.now() / 1000) + 600 };
  const { sessions } = new LoginFlow(config, KEY, DEPS.fetch);
  const [cookie = ""] = sessions.issue(sessions.begin({ id: { token: "id", claims }, access: "a" }), new Map());
  return cookie.split(";", 1)[0] ?? "";
}

/** Policies of each phase in the reverse of the order in which they must run: the order of the file must not matter. */
function reversed(policies: object): object {
  return Object.fromEntries(Object.entries(policies).reverse());
}

before(async () => {
  upstream = await Upstream.start();
  upstream.on("/authorize", (_request, response) => {
    asked.push("authorization");
    response.end();
  });
  service = await GrpcServer.start({
    [SHOULD_RATE_LIMIT]: {
      unary() {
        asked.push("limit");
        return RateLimitResponse.encode({ overall_code: 1 });
      },
    },
    [PROCESS]: {
      stream(stream) {
        stream.on("data", (message: Buffer) => {
          const { request_headers } = ProcessingRequest.decode(message);
          if (request_headers === undefined) return;
          asked.push("processor");
          stream.write(ProcessingResponse.encode({ request_headers: {} }));
        });
        stream.on("error", () => {});
      },
    },
  });
  const grpc = `127.0.0.1:${service.port}`;
  const headersOnly = { requestBodyMode: "none", responseBodyMode: "none", responseHeaderMode: "skip" };
  const extProc = { host: grpc, processingOptions: headersOnly };
  const remoteRateLimit = {
    host: grpc,
    domain: "shop",
    descriptors: [{ entries: [{ key: "path", value: "request.path" }] }],
  };
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const jwks = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "k" }] });
  const jwtAuth = { mode: "optional", issuer: "https://i.example", jwks };
  const extAuthz = { host: upstream.address, protocol: { http: { path: "'/authorize'" } } };
  const always = { rules: ["true"] };
  const set = { set: { "x-set": "1" } };
  /** A transformation that records when it has run, on both sides. */
  const transformations = (by: string): object => ({
    request: { set: { "x-by": `'${by}'` } },
    response: { set: { "x-path": `response.headers["x-path"] + ", ${by}"` } },
  });
  const gatewayPolicies = {
    cors: { allowOrigins: ["https://page.example"] },
    oidc: OIDC,
    jwtAuth,
    basicAuth: { mode: "optional", htpasswd: HTPASSWD },
    apiKey: { mode: "optional", keys: [{ key: "k" }] },
    extAuthz,
    authorization: always,
    extProc,
    transformations: transformations("gateway"),
  };
  const routePolicies = {
    cors: { allowOrigins: ["https://page.example"] },
    oidc: OIDC,
    jwtAuth,
    basicAuth: { mode: "optional", htpasswd: HTPASSWD },
    apiKey: { mode: "optional", keys: [{ key: "k" }] },
    extAuthz,
    authorization: always,
    retry: { attempts: 1, codes: [503] },
    localRateLimit: [{ maxTokens: 1000, tokensPerFill: 1, fillInterval: "1s" }],
    concurrencyLimit: [{ maxRequests: 1000 }],
    remoteRateLimit,
    buffer: { request: {} },
    compression: { minSize: 0 },
    sessionPersistence: {},
    extProc,
    transformations: transformations("route"),
    csrf: {},
    requestHeaderModifier: set,
    responseHeaderModifier: { set: { "x-path": "modifier" } },
    urlRewrite: { path: { full: "/rewritten" } },
    delay: { duration: "1ms" },
    requestMirror: { backend: { host: upstream.address }, percentage: 1 },
  };
  const backendPolicies = {
    authorization: always,
    extAuthz,
    backendAuth: { key: "secret" },
    transformations: transformations("backend"),
    requestHeaderModifier: set,
  };
  const backends = [{ host: upstream.address, policies: reversed(backendPolicies) }];
  const routes = [{ policies: reversed(routePolicies), backends }];
  const listeners = [{ policies: reversed(gatewayPolicies), routes }];
  const env = { OIDC_COOKIE_SECRET: KEY.toString("hex") };
  gateway = await TestGateway.start({ binds: [{ port: 0, listeners }] }, { env });
});
after(async () => {
  await gateway.stop();
  await service[Symbol.asyncDispose]();
  await upstream.close();
});

test("the policies of each phase run in their own order, whatever the order of the file", async () => {
  let path: unknown;
  const events = await traceOf(gateway, async () => {
    const { status, headers } = await call(gateway.port(), { headers: { cookie: session() } });
    assert.equal(status, 200);
    path = headers["x-path"];
  });
  const stages = events.flatMap(({ message }) => (message.type === "requestSnapshot" ? [message.stage] : []));
  const checks = ["basic auth", "api key", "ext authz", "authorization"];
  assert.deepEqual(stages, [
    "initial request",
    ...["cors", "oidc", "jwt", ...checks, "ext proc", "transformation", "policies"].map((each) => `gateway ${each}`),
    "compression",
    ...[
      "cors",
      "oidc",
      "jwt auth",
      ...checks,
      "retry",
      "concurrency limit",
      "local rate limit",
      "remote rate limit",
      "buffer",
      "ext proc",
    ],
    ...["transformation", "csrf", "request header modifier"],
    ...["url rewrite", "delay", "session persistence", "request mirror", "route policies"],
    ...["authorization", "ext authz", "auth", "transformation", "request header modifier"].map(
      (each) => `backend ${each}`,
    ),
    "final request",
  ]);
  const answers = events.flatMap(({ message }) => (message.type === "responseSnapshot" ? [message.stage] : []));
  assert.deepEqual(answers.slice(-5, -2), ["gateway transformation", "gateway ext proc", "compression"]);
  // Of the gateway, of the route, of the backend.
  assert.deepEqual(asked, ["authorization", "processor", "authorization", "limit", "processor", "authorization"]);
  // Responses pass the phases from the inside to the outside.
  assert.equal(path, "modifier, route, backend, gateway");
});
