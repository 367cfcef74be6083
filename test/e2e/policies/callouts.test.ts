import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { type Identity, noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { CHECK, CheckResponse } from "../../helpers/envoy/auth.ts";
import { PROCESS, ProcessingRequest, ProcessingResponse } from "../../helpers/envoy/ext-proc.ts";
import { RateLimitResponse, SHOULD_RATE_LIMIT } from "../../helpers/envoy/rate-limit.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { ProxyServer } from "../../helpers/proxy-server.ts";
import { RawUpstream, reply, valuesOf } from "../../helpers/raw-peer.ts";
import { traceOf } from "../trace/support.ts";

let ca: TestCa;
let service: Identity;
let client: Identity;

before(() => {
  if (noOpenssl !== false) return;
  ca = new TestCa();
  service = ca.issue("auth.example");
  client = ca.issue("gateway.example");
});
after(() => ca?.[Symbol.dispose]());

const SECRET = "very-secret-key";

/** One service for all three protocols, which allows everything and records the metadata of calls. */
async function services(tls?: Parameters<typeof GrpcServer.start>[2]) {
  const seen: Record<string, unknown>[] = [];
  const server = await GrpcServer.start(
    {
      [CHECK]: {
        unary(_message, metadata) {
          seen.push(metadata.getMap());
          return CheckResponse.encode({});
        },
      },
      [SHOULD_RATE_LIMIT]: {
        unary(_message, metadata) {
          seen.push(metadata.getMap());
          return RateLimitResponse.encode({ overall_code: 1 });
        },
      },
      [PROCESS]: {
        stream(call) {
          seen.push(call.metadata.getMap());
          call.on("data", (message: Buffer) => {
            const { request_headers } = ProcessingRequest.decode(message);
            if (request_headers !== undefined) call.write(ProcessingResponse.encode({ request_headers: {} }));
          });
          call.on("error", () => {});
        },
      },
    },
    0,
    tls,
  );
  return Object.assign(server, { seen });
}

const DESCRIPTORS = [{ entries: [{ key: "path", value: "request.path" }] }];
const HEADERS_ONLY = { requestBodyMode: "none", responseBodyMode: "none", responseHeaderMode: "skip" };

/** The three policies with gRPC callouts, each on its own path, all to `where`. */
function asking(where: object, upstream: number, others: object = {}): object {
  const policies = [
    { extAuthz: where },
    { extProc: { ...where, processingOptions: HEADERS_ONLY } },
    { remoteRateLimit: { ...where, domain: "shop", descriptors: DESCRIPTORS } },
  ];
  const routes = policies.map((each, i) => ({
    matches: [{ path: { pathPrefix: `/${i}` } }],
    policies: each,
    backends: [{ host: `127.0.0.1:${upstream}` }],
  }));
  return { binds: [{ port: 0, listeners: [{ routes }] }], ...others };
}

async function statuses(gateway: Pick<TestGateway, "port">): Promise<number[]> {
  const found: number[] = [];
  for (const i of [0, 1, 2]) found.push((await fetch(`http://127.0.0.1:${gateway.port()}/${i}`)).status);
  return found;
}

test("gRPC with TLS: the name is verified, a client certificate sent, credentials and headers become metadata", {
  skip: noOpenssl,
}, async () => {
  await using upstream = await RawUpstream.answering(() => reply("ok"));
  await using server = await services({ ...service, ca: ca.cert });
  const host = `127.0.0.1:${server.port}`;
  const tls = { root: ca.certFile, cert: client.certFile, key: client.keyFile };
  const policies = {
    backendTLS: { ...tls, hostname: "auth.example" },
    backendAuth: { key: SECRET },
    requestHeaderModifier: { set: { "X-Gateway": "one", Host: "named.example" } },
  };
  await using gateway = await LocalGateway.start(asking({ host, policies }, upstream.port));
  assert.deepEqual(await statuses(gateway), [200, 200, 200]);
  for (const metadata of server.seen) {
    assert.equal(metadata.authorization, `Bearer ${SECRET}`);
    assert.equal(metadata["x-gateway"], "one");
  }
  assert.equal(server.seen.length, 3);

  const failing = [
    { ...tls, hostname: "other.example" },
    { hostname: "auth.example", cert: client.certFile, key: client.keyFile },
    { root: ca.certFile, hostname: "auth.example" },
  ];
  for (const backendTLS of failing) {
    await gateway.reconfigure(asking({ host, policies: { backendTLS } }, upstream.port));
    assert.deepEqual(await statuses(gateway), [403, 500, 500], JSON.stringify(backendTLS));
  }
  const passing = [
    { ...tls, insecureHost: true },
    { cert: client.certFile, key: client.keyFile, insecure: true },
    { ...tls, subjectAltNames: ["nobody.example", "auth.example"] },
  ];
  for (const backendTLS of passing) {
    await gateway.reconfigure(asking({ host, policies: { backendTLS } }, upstream.port));
    assert.deepEqual(await statuses(gateway), [200, 200, 200], JSON.stringify(backendTLS));
  }
});

test("the policies of a named backend apply, also attached ones; those beside the service win", {
  skip: noOpenssl,
}, async () => {
  await using upstream = await RawUpstream.answering(() => reply("ok"));
  await using server = await services(service);
  const backends = [
    {
      name: "auth",
      host: `127.0.0.1:${server.port}`,
      policies: { backendAuth: { key: SECRET }, backendTLS: { root: ca.certFile, hostname: "auth.example" } },
    },
  ];
  const attached = {
    name: { name: "mark" },
    target: { backend: { backend: { name: "auth" } } },
    policy: { requestHeaderModifier: { set: { "x-mark": "attached" } } },
  };
  const where = { backend: "/auth" };
  await using gateway = await TestGateway.start(asking(where, upstream.port, { backends, policies: [attached] }));
  assert.deepEqual(await statuses(gateway), [200, 200, 200]);
  for (const metadata of server.seen.splice(0))
    assert.deepEqual([metadata.authorization, metadata["x-mark"]], [`Bearer ${SECRET}`, "attached"]);

  const own = { ...where, policies: { backendAuth: { key: "other" } } };
  await gateway.reconfigure(asking(own, upstream.port, { backends }));
  assert.deepEqual(await statuses(gateway), [200, 200, 200]);
  assert.deepEqual(
    server.seen.map(({ authorization }) => authorization),
    ["Bearer other", "Bearer other", "Bearer other"],
  );
  const dump = await (await fetch(`${gateway.url("admin")}/config_dump`)).text();
  assert.ok(dump.includes("backendAuth") && !dump.includes(SECRET) && !dump.includes("other"));
  assert.ok(!dump.includes("PRIVATE KEY"));
});

test("gRPC and HTTP go through a proxy, with TLS inside the tunnel", { skip: noOpenssl }, async () => {
  await using upstream = await RawUpstream.answering(() => reply("ok"));
  await using server = await services(service);
  await using proxy = await ProxyServer.start(server.port, service);
  const tunnel = {
    proxy: { host: `127.0.0.1:${proxy.port}` },
    policies: {
      backendTLS: { root: ca.certFile, hostname: "auth.example" },
      backendAuth: { key: { value: SECRET, location: { header: { name: "authorization", prefix: "Basic " } } } },
    },
  };
  const policies = { backendTLS: { root: ca.certFile }, backendTunnel: tunnel };
  await using gateway = await LocalGateway.start(asking({ host: "auth.example:443", policies }, upstream.port));
  assert.deepEqual(await statuses(gateway), [200, 200, 200]);
  assert.deepEqual(new Set(proxy.asked), new Set([`auth.example:443 auth.example:443 Basic ${SECRET}`]));

  // Plaintext: the proxy gets the request for forwarding.
  await using forwarder = await RawUpstream.answering((request) => reply(request.start, [], "403 No"));
  const forwarding = {
    host: "auth.example:80",
    protocol: { http: {} },
    policies: { backendTunnel: { proxy: { host: `127.0.0.1:${forwarder.port}` } } },
  };
  const routes = [{ policies: { extAuthz: forwarding }, backends: [{ host: `127.0.0.1:${upstream.port}` }] }];
  await gateway.reconfigure({ binds: [{ port: 0, listeners: [{ routes }] }] });
  const response = await fetch(`http://127.0.0.1:${gateway.port()}/a?b`);
  assert.deepEqual([response.status, await response.text()], [403, "GET http://auth.example:80/a?b HTTP/1.1"]);
});

test("mirrors and HTTP callouts carry the credentials of their backend, the client's request does not", async () => {
  const asked: { path: string; authorization: string; query: string }[] = [];
  await using server = await RawUpstream.answering((request) => {
    const [, path = "", query = ""] = /^\S+ ([^ ?]*)(\S*)/.exec(request.start) ?? [];
    asked.push({ path, query, authorization: valuesOf(request, "authorization").join() });
    return reply("ok");
  });
  const backends = [
    { name: "copy", host: `127.0.0.1:${server.port}`, policies: { backendAuth: { key: SECRET } } },
    {
      name: "asked",
      host: `127.0.0.1:${server.port}`,
      policies: { backendAuth: { key: { value: SECRET, location: { queryParameter: { name: "key" } } } } },
    },
  ];
  const policies = {
    extAuthz: { backend: "/asked", protocol: { http: { path: "'/question?a=b'" } } },
    requestMirror: { backend: { backend: "/copy" }, percentage: 1 },
  };
  const routes = [{ policies, backends: [{ host: `127.0.0.1:${server.port}` }] }];
  await using gateway = await TestGateway.start({ backends, binds: [{ port: 0, listeners: [{ routes }] }] });
  const events = await traceOf(gateway, () => fetch(`http://127.0.0.1:${gateway.port()}/page`));
  await gateway.until(() => asked.length === 3, "the copy");
  asked.sort((a, b) => a.authorization.localeCompare(b.authorization) || a.path.localeCompare(b.path));
  assert.deepEqual(asked, [
    { path: "/page", query: "", authorization: "" },
    { path: "/question", query: `?a=b&key=${SECRET}`, authorization: "" },
    { path: "/page", query: "", authorization: `Bearer ${SECRET}` },
  ]);
  assert.ok(!JSON.stringify(events).includes(SECRET));
  const scoped = events.filter(({ scope }) => scope !== undefined).map(({ scope, message }) => [scope, message.type]);
  assert.deepEqual(
    scoped.filter(([scope]) => String(scope) === "ext_authz").map(([, type]) => type),
    ["policy", "backendCallStart", "backendCallResult"],
  );
  assert.deepEqual(
    scoped
      .filter(([scope]) => String(scope) === "mirror")
      .map(([, type]) => type)
      .slice(0, 2),
    ["policy", "backendCallStart"],
  );
});

test("a token exchange counts towards the callout's deadline; without a token the callout is not sent", async () => {
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  const token = await new SignJWT({ sub: "ann" })
    .setProtectedHeader({ alg: "ES256", kid: "k" })
    .setIssuer("https://issuer.example")
    .setExpirationTime("5m")
    .sign(privateKey);
  const jwks = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "k" }] });
  const tokens: string[] = [];
  await using upstream = await RawUpstream.answering((request) => {
    tokens.push(valuesOf(request, "authorization").join());
    return reply("ok");
  });
  await using silent = await RawUpstream.listen();
  await using endpoint = await RawUpstream.answering(() => reply('{"access_token":"exchanged","token_type":"Bearer"}'));
  const config = (tokenEndpoint: number, timeout: string) => ({
    binds: [
      {
        port: 0,
        listeners: [
          {
            policies: { jwtAuth: { issuer: "https://issuer.example", jwks } },
            routes: [
              {
                policies: {
                  extAuthz: {
                    host: `127.0.0.1:${upstream.port}`,
                    timeout,
                    protocol: { http: {} },
                    failureMode: { denyWithStatus: 503 },
                    policies: {
                      backendAuth: { oauthTokenExchange: { host: `127.0.0.1:${tokenEndpoint}` } },
                    },
                  },
                },
                backends: [{ host: `127.0.0.1:${upstream.port}` }],
              },
            ],
          },
        ],
      },
    ],
  });
  await using gateway = await LocalGateway.start(config(endpoint.port, "20s"));
  const ask = async (headers = {}) => (await fetch(`http://127.0.0.1:${gateway.port()}/`, { headers })).status;
  assert.equal(await ask({ authorization: `Bearer ${token}` }), 200);
  assert.deepEqual(tokens, ["Bearer exchanged", ""]);
  assert.equal(await ask(), 503);
  await gateway.reconfigure(config(silent.port, "50ms"));
  assert.equal(await ask({ authorization: `Bearer ${token}` }), 503);
  const said = (text: string) => gateway.lines.some((line) => String(line.error).includes(text));
  await gateway.until(() => said("the request has no token to exchange"), "the reason of the first failure");
  await gateway.until(() => said("credentials for the call were not ready in time"), "the reason of the second");
});

test("transformations of a callout: its head, body and gRPC metadata may use values of the client's request, which stays unchanged", async () => {
  const questions: string[] = [];
  await using asked = await RawUpstream.answering((request) => {
    questions.push(
      [request.start, ...["x-user", "x-set"].flatMap((name) => valuesOf(request, name)), request.body].join(" "),
    );
    return reply("");
  });
  await using upstream = await RawUpstream.answering((request) => reply(valuesOf(request, "x-set").join() || "none"));
  await using server = await services();
  const request = {
    metadata: { who: "basicAuth.username + '-' + request.method" },
    set: { ":method": "'PUT'", ":path": "'/ask?' + metadata.who", "x-set": "metadata.who" },
    remove: ["x-user"],
    body: "'of ' + request.path",
  };
  const transformations = { request };
  const basicAuth = { htpasswd: "ann:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=" };
  const http = { path: "'/'", addRequestHeaders: { "x-user": "'u'" } };
  const metadataOnly = { request: { set: { "x-set": "basicAuth.username" } } };
  const config = {
    backends: [{ name: "asked", host: `127.0.0.1:${asked.port}`, policies: { transformations } }],
    binds: [
      {
        port: 0,
        listeners: [
          {
            routes: [
              {
                policies: {
                  basicAuth,
                  extAuthz: { backend: "/asked", protocol: { http } },
                  remoteRateLimit: {
                    host: `127.0.0.1:${server.port}`,
                    domain: "shop",
                    descriptors: DESCRIPTORS,
                    policies: { transformations: metadataOnly },
                  },
                },
                backends: [{ host: `127.0.0.1:${upstream.port}` }],
              },
            ],
          },
        ],
      },
    ],
  };
  await using gateway = await TestGateway.start(config);
  const headers = { authorization: `Basic ${btoa("ann:secret")}` };
  const response = await fetch(`http://127.0.0.1:${gateway.port()}/`, { headers });
  assert.deepEqual([response.status, await response.text()], [200, "none"]);
  assert.deepEqual(questions, ["PUT /ask?ann-GET HTTP/1.1 ann-GET of /ask"]);
  assert.equal(server.seen[0]?.["x-set"], "ann");
});
