/** TracegatePolicies that call services or fetch documents, with traffic: the services run, and the controller finds them. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { CHECK, type CheckAnswer, CheckRequest, CheckResponse } from "../../helpers/envoy/auth.ts";
import { PROCESS, ProcessingRequest, ProcessingResponse } from "../../helpers/envoy/ext-proc.ts";
import { OVER_LIMIT, RateLimitRequest, RateLimitResponse, SHOULD_RATE_LIMIT } from "../../helpers/envoy/rate-limit.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { CLIENT, IdentityProvider } from "../../helpers/identity-provider.ts";
import { Backends, echo, OneProxy, route, service } from "../../helpers/kube/one-proxy.ts";

const backends = new Backends();
after(() => backends[Symbol.dispose]());

const CREATED = "2026-01-01T00:00:00Z";
const DENIED: CheckAnswer = { status: { code: 7 }, denied_response: { status: { code: 401 }, body: "who?" } };

/** A route to a server that echoes, and what it needs. */
let shop: string;
before(async () => {
  const port = await backends.listen(createServer(echo("shop")));
  shop = service("shop", port) + route("shop", CREATED, "[{ backendRefs: [{ name: shop, port: 80 }] }]");
});

/** Attached to the route. */
function policy(traffic: string): string {
  return `---
kind: TracegatePolicy
metadata: { name: shop }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop }]
  traffic: ${traffic}
`;
}

/** An authorization service that allows requests with `x-user`, and sends the name to backends. */
async function authorizer(): Promise<GrpcServer> {
  return await GrpcServer.start({
    [CHECK]: {
      unary(message) {
        const user = CheckRequest.decode(message).attributes?.request?.http?.headers?.["x-user"];
        if (user === undefined) return CheckResponse.encode(DENIED);
        const headers = [{ header: { key: "x-added", value: `for ${user}` } }];
        return CheckResponse.encode({ status: { code: 0 }, ok_response: { headers } });
      },
    },
  });
}

/** Like `authorizer`, by HTTP: responds with the requested path. */
async function httpAuthorizer(): Promise<number> {
  return await backends.listen(
    createServer((incoming, response) => {
      const user = incoming.headers["x-user"];
      response.writeHead(user === undefined ? 403 : 200, { "x-added": `${incoming.url} ${user}` }).end();
    }),
  );
}

test("jwtAuth: the controller fetches the key set by its URL", async () => {
  const { privateKey, publicKey } = await generateKeyPair("RS256", { extractable: true });
  const keys = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "1", alg: "RS256" }] });
  const port = await backends.listen(createServer((_, response) => response.end(keys)));
  const sign = (issuer: string) =>
    new SignJWT({ iss: issuer, sub: "alice", exp: Math.floor(Date.now() / 1000) + 300 })
      .setProtectedHeader({ alg: "RS256", kid: "1" })
      .sign(privateKey);
  const jwt = `{ jwtAuth: { mode: strict, issuer: "https://a.test", jwks: { url: "http://127.0.0.1:${port}/keys" } } }`;
  await using proxy = await OneProxy.start(shop + policy(jwt));
  assert.notEqual((await proxy.get("/")).status, 200, "nothing passes before there are keys");
  const good = { authorization: `Bearer ${await sign("https://a.test")}` };
  assert.equal((await proxy.getUntil(({ status }) => status === 200, "/", good)).body, "shop /");
  assert.equal((await proxy.get("/")).status, 401);
  assert.equal((await proxy.get("/", { authorization: `Bearer ${await sign("https://b.test")}` })).status, 401);
});

test("oidc: the controller discovers the provider, and the proxy sends browsers there", async () => {
  const redirect = "http://a.test/callback";
  await using provider = await IdentityProvider.start(redirect);
  const secret = `---
kind: Secret
metadata: { name: oidc }
data: { secret: ${Buffer.from(CLIENT.clientSecret).toString("base64")} }
`;
  const oidc = `{ oidc: { issuer: "${provider.issuer}", clientId: ${CLIENT.clientId}, clientSecret: { secretKeyRef: { name: oidc, key: secret } }, redirectURI: "${redirect}" } }`;
  await using proxy = await OneProxy.start(shop + secret + policy(oidc));
  const { status, headers } = await proxy.getUntil(
    ({ location }) => location.startsWith(`${provider.issuer}/auth?`),
    "/",
    { accept: "text/html" },
  );
  assert.equal(status, 302);
  assert.match(String(headers["set-cookie"]), /HttpOnly/i);
});

test("extAuthz by gRPC: a Service", async () => {
  await using server = await authorizer();
  const authz = service("authz", server.port);
  await using proxy = await OneProxy.start(
    shop + authz + policy("{ extAuthz: { backendRef: { name: authz, port: 80 } } }"),
  );
  assert.deepEqual(pick(await proxy.get("/")), [401, "who?"]);
  assert.deepEqual(pick(await proxy.get("/", { "x-user": "alice" })), [200, "shop / for alice"]);
  server.stop();
  assert.equal((await proxy.get("/", { "x-user": "alice" })).status, 403, "nothing passes without the service");
});

test("extAuthz by HTTP: a TracegateBackend", async () => {
  const backend = `---
kind: TracegateBackend
metadata: { name: authz }
spec: { static: { host: 127.0.0.1, port: ${await httpAuthorizer()} } }
`;
  const authz =
    "{ extAuthz: { backendRef: { kind: TracegateBackend, name: authz }, includeRequestHeaders: [x-user], protocol: { http: { includeResponseHeaders: [x-added] } } } }";
  await using proxy = await OneProxy.start(shop + backend + policy(authz));
  assert.equal((await proxy.get("/a")).status, 403);
  assert.deepEqual(pick(await proxy.get("/a", { "x-user": "alice" })), [200, "shop /a /a alice"]);
});

test("the filter ExternalAuth, by gRPC and by HTTP", async () => {
  await using server = await authorizer();
  const filter = (name: string, more: string) =>
    `[{ type: ExternalAuth, externalAuth: { backendRef: { name: ${name}, port: 80 }, ${more} } }]`;
  const http = filter(
    "http-authz",
    "protocol: HTTP, http: { path: /check, allowedHeaders: [x-user], allowedResponseHeaders: [x-added] }",
  );
  const rules = `
    - { matches: [{ path: { value: /grpc } }], filters: ${filter("authz", "protocol: GRPC, grpc: { allowedHeaders: [x-user] }")}, backendRefs: [{ name: shop, port: 80 }] }
    - { matches: [{ path: { value: /http } }], filters: ${http}, backendRefs: [{ name: shop, port: 80 }] }
    - { matches: [{ path: { value: /none } }], filters: ${filter("missing", "protocol: GRPC")}, backendRefs: [{ name: shop, port: 80 }] }`;
  const services = service("authz", server.port) + service("http-authz", await httpAuthorizer());
  await using proxy = await OneProxy.start(shop + services + route("guarded", CREATED, rules));
  const alice = { "x-user": "alice" };
  assert.deepEqual(pick(await proxy.get("/grpc")), [401, "who?"]);
  assert.deepEqual(pick(await proxy.get("/grpc", alice)), [200, "shop /grpc for alice"]);
  assert.equal((await proxy.get("/http")).status, 403);
  assert.deepEqual(pick(await proxy.get("/http", alice)), [200, "shop /http /check/http alice"]);
  assert.equal((await proxy.get("/none", alice)).status, 500);
});

test("extProc and remoteRateLimit: Services", async () => {
  await using processor = await GrpcServer.start({
    [PROCESS]: {
      stream(call) {
        call.on("data", (message: Buffer) => {
          const { request_headers: asked } = ProcessingRequest.decode(message);
          const set_headers = [{ header: { key: "x-added", value: "processed" } }];
          const response = asked === undefined ? {} : { header_mutation: { set_headers } };
          const answer = { response };
          call.write(
            ProcessingResponse.encode(asked === undefined ? { response_headers: answer } : { request_headers: answer }),
          );
        });
        call.on("end", () => call.end());
        call.on("error", () => {});
      },
    },
  });
  const hits = new Map<string, number>();
  await using limiter = await GrpcServer.start({
    [SHOULD_RATE_LIMIT]: {
      unary(message) {
        const { domain = "" } = RateLimitRequest.decode(message);
        hits.set(domain, (hits.get(domain) ?? 0) + 1);
        return RateLimitResponse.encode({ overall_code: (hits.get(domain) ?? 0) > 2 ? OVER_LIMIT : 1 });
      },
    },
  });
  const services = service("processor", processor.port) + service("limiter", limiter.port);
  const both = `{
    extProc: { backendRef: { name: processor, port: 80 }, processingOptions: { requestBodyMode: none, responseBodyMode: none, responseTrailerMode: skip } },
    remoteRateLimit: { backendRef: { name: limiter, port: 80 }, domain: shop, descriptors: [{ entries: [{ key: all, value: '"yes"' }] }] } }`;
  await using proxy = await OneProxy.start(shop + services + policy(both));
  const answers = [await proxy.get("/"), await proxy.get("/"), await proxy.get("/")];
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 429],
  );
  assert.equal(answers[0]?.body, "shop / processed");
});

function pick({ status, body }: { readonly status: number; readonly body: string }): [number, string] {
  return [status, body];
}
