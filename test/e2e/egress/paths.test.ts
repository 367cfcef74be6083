/**
 * Every path from configuration to a connection, tried against one of the gateway's own servers with each spelling of its address. The lists
 * follow from the types of the code: a new target, policy or field of a bind does not compile here before it has a case.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { LogOutput } from "../../../src/base/log.ts";
import { parseLogFilter } from "../../../src/base/log-filter.ts";
import { OwnSockets } from "../../../src/base/own-sockets.ts";
import type { ConnectionLimits } from "../../../src/http/stream.ts";
import type { Bind, Frontend } from "../../../src/ir/ir.ts";
import { makeExports } from "../../../src/main/telemetry-export.ts";
import { Egress, NO_LOOKUP_RULES, type Provenance } from "../../../src/net/egress.ts";
import type { PolicyKind } from "../../../src/policies/policy-set.ts";
import { exporterKey } from "../../../src/telemetry/otlp/messages.ts";
import { ResourceStore } from "../../../src/translation/resources/store.ts";
import { fetchThrough } from "../../../src/upstream/callouts/fetch.ts";
import { Resolver } from "../../../src/upstream/resolve/resolver.ts";
import type { Target } from "../../../src/upstream/settings/target.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { ownAddress } from "../../helpers/own-address.ts";
import { RawPeer, statusOf } from "../../helpers/raw-peer.ts";
import { irOf, WORKER } from "../../helpers/supervisor.ts";
import { until } from "../../helpers/until.ts";

/** Why the case leads to no connection. */
type Nowhere = { readonly nowhere: string };
/** Makes a configuration in which a request or connection leads to `at`, which is `host:port` or `unix:/path`. */
type Config = (at: string) => object;

const NO_CALL: Nowhere = { nowhere: "makes no call" };
const LIMIT: Nowhere = { nowhere: "a setting of connections that the target names" };
const isConfig = (made: Config | Nowhere): made is Config => typeof made === "function";

const listener = (parts: object): object => ({ binds: [{ port: 0, listeners: [parts] }] });
const routed = (backend: object, policies: object = {}): object =>
  listener({ routes: [{ policies, backends: [backend] }] });
const FAR = { host: "192.0.2.1:9", policies: { tcp: { connectTimeout: "50ms" } } };
/** A policy of the route, in front of a backend that is out of reach. */
const policy =
  (made: (at: string) => object): Config =>
  (at) =>
    routed(FAR, made(at));

const TARGETS = {
  static: (at) => routed({ host: at }),
  unix: (at) => routed({ host: at }),
  service: (at) => {
    const [, host = "", port = ""] = /^\[?(.*?)\]?:(\d+)$/.exec(at) ?? [];
    const named = /^[a-z]/.test(host);
    return {
      ...(routed({ service: { name: "default/own.internal", port: 80 } }) as object),
      services: [{ name: "own", namespace: "default", hostname: "own.internal", ports: { 80: 8080 } }],
      workloads: [
        {
          uid: "own",
          name: "own",
          namespace: "default",
          workloadIps: named ? [] : [host],
          ...(named && { hostname: host }),
          services: { "default/own.internal": { 80: Number(port) } },
        },
      ],
    };
  },
  pool: (at) => routed({ name: "own", endpoints: [{ host: at }] }),
  dynamic: (at) => routed({ dynamic: { target: JSON.stringify(at) } }),
  internal: { nowhere: "the admin API, by a socket that only files may lead to; e2e/internal" },
  routeGroup: { nowhere: "leads to other targets" },
  invalid: { nowhere: "has no address" },
} satisfies Record<Target["type"], Config | Nowhere>;

const POLICIES = {
  requestHeaderModifier: NO_CALL,
  responseHeaderModifier: NO_CALL,
  urlRewrite: NO_CALL,
  requestRedirect: NO_CALL,
  directResponse: NO_CALL,
  timeout: NO_CALL,
  cors: NO_CALL,
  csrf: NO_CALL,
  requestMirror: policy((host) => ({ requestMirror: { backend: { host }, percentage: 1 } })),
  localRateLimit: NO_CALL,
  concurrencyLimit: NO_CALL,
  remoteRateLimit: policy((host) => ({
    remoteRateLimit: { host, domain: "d", descriptors: [{ entries: [{ key: "a", value: '"b"' }] }] },
  })),
  extAuthz: policy((host) => ({ extAuthz: { host, protocol: { http: {} } } })),
  extProc: policy((host) => ({ extProc: { host } })),
  transformations: NO_CALL,
  retry: NO_CALL,
  oidc: { nowhere: "its URLs are tried below" },
  jwtAuth: { nowhere: "its URLs are tried below" },
  basicAuth: NO_CALL,
  apiKey: NO_CALL,
  backendAuth: policy((host) => ({ backendAuth: { oauthTokenExchange: { host } } })),
  authorization: NO_CALL,
  ipAccess: NO_CALL,
  satisfy: { nowhere: "calls what its alternatives call: jwtAuth and oidc" },
  backendTLS: (at) => routed({ host: at, policies: { backendTLS: { insecure: true } } }),
  http: (at) => routed({ host: at, policies: { http: { version: "HTTP/2.0" } } }),
  tcp: LIMIT,
  backendTunnel: (at) => routed({ host: "far.example:80", policies: { backendTunnel: { proxy: { host: at } } } }),
  health: (at) => routed({ host: at, policies: { health: { active: { tcp: {}, interval: "1s" } } } }),
  sessionAffinity: LIMIT,
  retryBudget: LIMIT,
  delay: NO_CALL,
  maxRequestBodySize: NO_CALL,
  buffer: NO_CALL,
  grpcWeb: NO_CALL,
  errorPages: NO_CALL,
  compression: NO_CALL,
  sessionPersistence: NO_CALL,
} satisfies Record<PolicyKind, Config | Nowhere>;

const EXPORTED: Nowhere = { nowhere: "exported by the main thread, tried below" };
const OF_CLIENTS: Nowhere = { nowhere: "concerns connections of clients" };

const FIELDS = {
  networkExtAuthz: (host) => ({
    ...routed(FAR),
    frontendPolicies: { networkExtAuthz: { host, protocol: { http: {} } } },
  }),
  tracing: EXPORTED,
  accessLog: EXPORTED,
  maxBufferSize: OF_CLIENTS,
  maxBufferedBytes: OF_CLIENTS,
  maxConnections: OF_CLIENTS,
  forwarded: OF_CLIENTS,
  requestId: OF_CLIENTS,
  keepalives: OF_CLIENTS,
  proxyProtocol: OF_CLIENTS,
  connect: { nowhere: "CONNECT is routed to a target, or stays inside the process" },
  udp: OF_CLIENTS,
  handshakeTimeout: OF_CLIENTS,
  ipAccess: NO_CALL,
  networkAuthorization: NO_CALL,
  origins: { nowhere: "they are names of objects and fields" },
} satisfies Record<Exclude<keyof Frontend, keyof ConnectionLimits>, Config | Nowhere>;

const PROTOCOLS = {
  http: { nowhere: "all of the above" },
  tcp: (host) => listener({ protocol: "TCP", tcpRoutes: [{ backends: [{ host }] }] }),
  tls: { nowhere: "as tcp, after the name was read" },
  udp: { nowhere: "ports of UDP; e2e/udp" },
} satisfies Record<Bind["protocol"], Config | Nowhere>;

// ── the own server ──

let connections = 0;
const folder = mkdtempSync(join(tmpdir(), "paths-"));
const servers: Server[] = [];
let port = 0;

async function listen(options: object): Promise<Server> {
  const server = createServer((socket) => {
    connections++;
    socket.destroy();
  });
  servers.push(server);
  await once(server.listen(options), "listening");
  return server;
}

before(async () => {
  port = ((await listen({ port: 0, host: "::" })).address() as { port: number }).port;
  await listen({ path: join(folder, "own.sock") });
});
after(() => {
  for (const server of servers) server.close();
  rmSync(folder, { recursive: true });
});

const HOSTS = ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "localhost", ownAddress()];

/** The process that the server belongs to. */
function ownProcess(own: OwnSockets): void {
  own.addPort("tcp", "server", port);
  own.addUnix(join(folder, "own.sock"));
}

interface Rules {
  /** The server belongs to the gateway. */
  readonly guarded?: boolean;
  readonly denyNetworks?: readonly string[];
  /** There must be a connection. */
  readonly leadsThere?: boolean;
}

/** Puts a configuration into effect and sends one request, or bytes if HTTP is not served. */
async function play(config: object, provenance: Provenance, rules: Rules): Promise<void> {
  const { guarded = false, denyNetworks = [], leadsThere = false } = rules;
  const lookupRules = { denyDomains: [], denyNetworks };
  const egress = { provenance, lookupRules, ...(provenance === "stream" && { unixFolder: folder }) };
  await using gateway = await LocalGateway.start({ binds: [] }, { egress });
  if (guarded) ownProcess(gateway.own);
  await gateway.reconfigure(config);
  const socket = connect(gateway.port(), "127.0.0.1");
  socket.on("error", () => {});
  socket.resume();
  socket.write("GET / HTTP/1.1\r\nHost: a.test\r\nAuthorization: Bearer token\r\nConnection: close\r\n\r\n");
  await new Promise((resolve) => socket.once("close", resolve));
  if (leadsThere) await gateway.until(() => connections > 0, "a connection");
}

const CASES = Object.entries({ target: TARGETS, policy: POLICIES, field: FIELDS, protocol: PROTOCOLS }).flatMap(
  ([list, table]) =>
    Object.entries<Config | Nowhere>(table).flatMap(([name, made]) =>
      isConfig(made) ? [[`${list} ${name}`, made] as const] : [],
    ),
);

for (const [name, made] of CASES)
  test(`${name}: leads to other servers, never to the gateway's own`, async () => {
    const unix = name === "target unix";
    const ways = unix ? [`unix:${join(folder, "own.sock")}`] : HOSTS.map((host) => `${host}:${port}`);
    connections = 0;
    // Without the guard there is a connection, so the case leads there.
    await play(made(ways[0] ?? ""), "operator", { leadsThere: true });
    connections = 0;
    for (const at of ways)
      for (const provenance of ["operator", "stream"] as const) {
        await play(made(at), provenance, { guarded: true });
        assert.equal(connections, 0, `${provenance} ${at}`);
      }
    if (unix) return;
    const denyNetworks = [`${ownAddress()}/32`];
    for (const host of [ownAddress(), `[::ffff:${ownAddress()}]`]) {
      connections = 0;
      // Pods are inside the networks that an operator excludes.
      const discovered = name === "target service";
      await play(made(`${host}:${port}`), "stream", { denyNetworks, leadsThere: discovered });
      if (!discovered) assert.equal(connections, 0, `${host} is in a denied network`);
    }
  });

test("an address in a denied network that a workload has is not open to others, not even on the workload's connections", async (t) => {
  const upstream = createHttpServer((_request, response) => response.end());
  t.after(() => upstream.close());
  await once(upstream.listen(0, ownAddress()), "listening");
  const at = `${ownAddress()}:${(upstream.address() as { port: number }).port}`;
  const matches = (pathPrefix: string): object[] => [{ path: { pathPrefix } }];
  const config = {
    ...TARGETS.service(at),
    ...listener({
      routes: [
        { matches: matches("/workload"), backends: [{ service: { name: "default/own.internal", port: 80 } }] },
        { matches: matches("/named"), backends: [{ host: at }] },
      ],
    }),
  };
  const lookupRules = { denyDomains: [], denyNetworks: [`${ownAddress()}/32`] };
  await using gateway = await LocalGateway.start(config, { egress: { provenance: "stream", lookupRules } });
  const statuses: number[] = [];
  for (const path of ["/workload", "/named", "/workload"])
    statuses.push(
      statusOf(await RawPeer.ask(gateway.port(), `GET ${path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n`)),
    );
  assert.deepEqual(statuses, [200, 503, 200]);
});

test("URLs of keys, discovery and token endpoints: as above, by redirects too", async () => {
  const redirect = createServer((socket) => {
    socket.on("error", () => {});
    socket.end(`HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:${port}/\r\ncontent-length: 0\r\n\r\n`);
  });
  servers.push(redirect);
  await once(redirect.listen(0, ownAddress()), "listening");
  const { port: first } = redirect.address() as { port: number };
  const urls = [...HOSTS.flatMap((host) => [`http://${host}:${port}/`, `https://${host}:${port}/`])];
  for (const guarded of [false, true])
    for (const provenance of ["operator", "stream"] as const) {
      if (!guarded && provenance === "stream") continue;
      const own = new OwnSockets();
      if (guarded) ownProcess(own);
      const egress = new Egress({ provenance, lookupRules: NO_LOOKUP_RULES }, own);
      connections = 0;
      const store = new ResourceStore(egress);
      await store.fetch([...urls, `http://${ownAddress()}:${first}/`]);
      const fetch = fetchThrough(new Resolver("All", egress));
      const request = { method: "POST" as const, headers: [], timeoutMs: 10_000, maxBytes: 1 };
      for (const url of urls) await assert.rejects(fetch(url, request));
      if (guarded) assert.equal(connections, 0);
      else assert.ok(connections > urls.length, `${connections}`);
    }
  const denied = {
    provenance: "stream",
    lookupRules: { denyDomains: [], denyNetworks: [`${ownAddress()}/32`] },
  } as const;
  connections = 0;
  const url = `http://${ownAddress()}:${port}/`;
  const egress = new Egress(denied, new OwnSockets());
  await new ResourceStore(egress).fetch([url]);
  const request = { method: "POST" as const, headers: [], timeoutMs: 10_000, maxBytes: 1 };
  await assert.rejects(fetchThrough(new Resolver("All", egress))(url, request));
  assert.equal(connections, 0);
});

test("collectors of traces and logs: as above", async () => {
  const log = new LogOutput(parseLogFilter("off"), "text", () => {}).logger("telemetry");
  for (const guarded of [false, true])
    for (const signal of ["traces", "logs"] as const)
      for (const at of ["127.0.0.1", ownAddress()].map((host) => `${host}:${port}`)) {
        const own = new OwnSockets();
        if (guarded) ownProcess(own);
        const exports = makeExports(
          WORKER,
          new Egress({ provenance: "operator", lookupRules: NO_LOOKUP_RULES }, own),
          {},
          log,
        );
        const collector = { host: at, protocol: "http" };
        const ir = irOf({
          ...routed(FAR),
          frontendPolicies:
            signal === "traces"
              ? { tracing: { ...collector, randomSampling: true } }
              : { accessLog: { otlp: collector } },
        });
        exports.use(ir);
        const [{ frontend }] = ir.frame.binds as unknown as readonly [{ readonly frontend: Frontend }];
        const used = signal === "traces" ? frontend.tracing?.collector : frontend.accessLog?.otlp?.collector;
        assert.ok(used !== undefined);
        connections = 0;
        exports.add(exporterKey(signal, used), { count: 1, bytes: new Uint8Array([10, 0]) });
        if (!guarded) await until(() => connections > 0, `a connection for ${signal} to ${at}`);
        await exports.close(50);
        assert.equal(connections > 0, !guarded, `${signal} ${at}`);
      }
});
