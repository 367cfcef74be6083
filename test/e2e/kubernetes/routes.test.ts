/** Routes of Kubernetes with traffic. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { connect, createServer as createTcpServer } from "node:net";
import { after, before, describe, test } from "node:test";
import { endpointRows } from "../../../src/cli/dump/endpoints.ts";
import { noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { Backends, echo, OneProxy, route, service, slice } from "../../helpers/kube/one-proxy.ts";

const backends = new Backends();
after(() => backends[Symbol.dispose]());

const EARLY = "2026-01-01T00:00:00Z";
const LATE = "2026-01-02T00:00:00Z";

describe("HTTPRoutes", () => {
  let one: number;
  let two: number;
  before(async () => {
    one = await backends.listen(createServer(echo("one")));
    two = await backends.listen(createServer(echo("two")));
  });

  test("matches, filters and backends", async () => {
    const rules = `
    - matches: [{ path: { type: Exact, value: /exact } }, { headers: [{ name: X-To, value: two }] }]
      backendRefs: [{ name: two, port: 80 }]
    - matches: [{ path: { value: /rewrite } }]
      filters:
        - { type: URLRewrite, urlRewrite: { path: { type: ReplacePrefixMatch, replacePrefixMatch: /new } } }
        - { type: RequestHeaderModifier, requestHeaderModifier: { set: [{ name: X-Added, value: yes }] } }
      backendRefs: [{ name: one, port: 80 }]
    - matches: [{ path: { value: /redirect } }]
      filters: [{ type: RequestRedirect, requestRedirect: { hostname: b.test } }]
    - matches: [{ path: { value: /missing } }]
      backendRefs: [{ name: missing, port: 80 }]
    - matches: [{ path: { value: /nothing } }]
    - matches: [{ path: { value: /filter } }]
      filters: [{ type: ExtensionRef, extensionRef: { group: example.com, kind: Filter, name: none } }]
      backendRefs: [{ name: one, port: 80 }]
    - matches: [{ path: { value: /session } }]
      sessionPersistence: { cookieConfig: { lifetimeType: Permanent } }
      backendRefs: [{ name: one, port: 80 }]
    - matches: [{ path: { value: /empty } }]
      backendRefs: [{ name: empty, port: 80 }]
    - matches: [{ path: { value: /default } }]
      backendRefs: [{ name: one, port: 80 }, { name: two, port: 80, weight: 0 }]`;
    const empty = "---\nkind: Service\nmetadata: { name: empty }\nspec: { ports: [{ port: 80 }] }\n";
    await using proxy = await OneProxy.start(
      service("one", one) + service("two", two) + empty + route("all", EARLY, rules),
    );
    assert.equal((await proxy.get("/exact")).body, "two /exact");
    assert.equal((await proxy.get("/default", { "x-to": "two" })).body, "one /default", "the longer path goes first");
    assert.equal((await proxy.get("/", { "x-to": "two" })).body, "two /");
    assert.equal((await proxy.get("/rewrite/it")).body, "one /new/it yes");
    assert.equal((await proxy.get("/redirect/x")).location, "http://b.test:8000/redirect/x", "the listener's port");
    for (const path of ["/missing", "/nothing", "/filter", "/session"])
      assert.equal((await proxy.get(path)).status, 500, path);
    assert.equal((await proxy.get("/empty")).status, 503);
    assert.equal((await proxy.get("/default", { host: "other.test" })).status, 404);
  });

  test("the endpoints of a ServiceImport, in several clusters", async () => {
    const imported = (slices: string) => `
---
kind: ServiceImport
metadata: { name: far }
spec: { type: ClusterSetIP, ports: [{ name: http, port: 80, protocol: TCP }] }
${slices}`;
    const endpoints = (cluster: string, port: number) => `
---
kind: EndpointSlice
metadata: { name: far-${cluster}, labels: { multicluster.kubernetes.io/service-name: far } }
addressType: IPv4
ports: [{ name: http, port: ${port}, protocol: TCP }]
endpoints: [{ addresses: [127.0.0.1] }]
`;
    const rules = `
    - backendRefs: [{ group: multicluster.x-k8s.io, kind: ServiceImport, name: far, port: 80 }]`;
    await using proxy = await OneProxy.start(imported(endpoints("east", one)) + route("all", EARLY, rules));
    assert.equal((await proxy.get("/")).body, "one /");
    await proxy.apply(endpoints("east", two));
    assert.equal((await proxy.get("/")).body, "two /");
  });

  test("TracegatePolicies as filters of rules and backends", async () => {
    const filter = (name: string) =>
      `{ type: ExtensionRef, extensionRef: { group: tracegate.dev, kind: TracegatePolicy, name: ${name} } }`;
    const rules = `
    - matches: [{ path: { value: /limited } }]
      filters: [${filter("limit")}]
      backendRefs: [{ name: one, port: 80 }]
    - matches: [{ path: { value: /backend } }]
      backendRefs: [{ name: one, port: 80, filters: [${filter("add")}] }]
    - backendRefs: [{ name: one, port: 80 }]`;
    const policy = (name: string, spec: string) =>
      `---\nkind: TracegatePolicy\nmetadata: { name: ${name} }\nspec: ${spec}\n`;
    const limit = (tokens: number) =>
      policy(
        "limit",
        `{ traffic: { localRateLimit: [{ maxTokens: ${tokens}, tokensPerFill: 1, fillInterval: 1h }] } }`,
      );
    const add = policy("add", "{ backend: { requestHeaderModifier: { set: { x-added: yes } } } }");
    await using proxy = await OneProxy.start(service("one", one) + route("all", EARLY, rules) + add);
    assert.equal((await proxy.get("/limited")).status, 500, "a filter that does not exist is not skipped");
    assert.equal((await proxy.get("/")).body, "one /", "other rules are served");
    assert.equal((await proxy.get("/backend")).body, "one /backend yes");
    await proxy.apply(limit(1));
    assert.equal((await proxy.get("/limited")).status, 200);
    assert.equal((await proxy.get("/limited")).status, 429);
    assert.equal((await proxy.get("/")).status, 200);
  });

  test("requests of a session go to the backend of the first one, whatever the weights", async () => {
    const rules = `
    - sessionPersistence: { type: Header, sessionName: x-session }
      backendRefs: [{ name: one, port: 80 }, { name: two, port: 80 }]`;
    await using proxy = await OneProxy.start(service("one", one) + service("two", two) + route("split", EARLY, rules));
    const { body, headers } = await proxy.send("GET", "/", {});
    const session = String(headers["x-session"]);
    for (let i = 0; i < 20; i++) assert.equal((await proxy.get("/", { "x-session": session })).body, body);
  });

  test("a policy of a Service sends requests of a session to one endpoint, on any route, until it is deleted", async () => {
    const rules = `
    - matches: [{ path: { value: /a } }]
      backendRefs: [{ name: shop, port: 80 }, { name: other, port: 80 }]
    - matches: [{ path: { value: /b } }]
      backendRefs: [{ name: shop, port: 80 }]`;
    const policy = (spec: string) =>
      `---\nkind: XBackendTrafficPolicy\nmetadata: { name: shop }\nspec: { targetRefs: [{ group: "", kind: Service, name: shop }], ${spec} }\n`;
    await using proxy = await OneProxy.start(
      service("shop", one) +
        service("other", two) +
        route("shop", EARLY, rules) +
        policy("sessionPersistence: { sessionName: s }"),
    );
    const cookieOf = async (path: string, cookie?: string): Promise<string | undefined> => {
      const { headers } = await proxy.send("GET", path, cookie === undefined ? {} : { cookie });
      return headers["set-cookie"]?.[0];
    };
    const set = await cookieOf("/a");
    assert.match(set ?? "", /^s=[^;]+; Path=\/a; HttpOnly/);
    const cookie = set?.split(";", 1)[0] ?? "";
    const { body } = await proxy.get("/a", { cookie });
    for (let i = 0; i < 20; i++) assert.equal((await proxy.get("/a", { cookie })).body, body);
    assert.equal(await cookieOf("/a", cookie), undefined, "the client has its session");
    assert.match((await cookieOf("/b", cookie)) ?? "", /^s=/, "rules do not share sessions");
    await proxy.apply(policy("retryConstraint: {}"));
    assert.equal(await cookieOf("/a"), undefined);
  });

  test("a backend that cannot be called keeps its share of the requests, which get 500", async () => {
    const rules = "[{ backendRefs: [{ name: one, port: 80, weight: 1 }, { name: missing, port: 80, weight: 1 }] }]";
    await using proxy = await OneProxy.start(service("one", one) + route("half", EARLY, rules));
    const counts = new Map<number, number>();
    for (let i = 0; i < 100; i++) {
      const { status } = await proxy.get("/");
      counts.set(status, (counts.get(status) ?? 0) + 1);
    }
    assert.deepEqual([...counts.keys()].sort(), [200, 500]);
    // Fewer than one run in a million is outside of these bounds.
    assert.ok((counts.get(500) ?? 0) > 25 && (counts.get(500) ?? 0) < 75, String(counts.get(500)));
  });

  test("of two routes with the same match, the older one is used", async () => {
    const to = (name: string) => `[{ backendRefs: [{ name: ${name}, port: 80 }] }]`;
    await using proxy = await OneProxy.start(
      service("one", one) + service("two", two) + route("a", LATE, to("one")) + route("z", EARLY, to("two")),
    );
    assert.equal((await proxy.get("/")).body, "two /");
  });

  test("requests follow endpoints when they move", async () => {
    const rules = "[{ backendRefs: [{ name: shop, port: 80 }] }]";
    await using proxy = await OneProxy.start(service("shop", one) + route("shop", EARLY, rules));
    assert.equal((await proxy.get("/")).body, "one /");
    await proxy.apply(slice("shop", two));
    assert.equal((await proxy.get("/")).body, "two /");
  });
});

test("of two TCPRoutes of a listener, the older one is used", async () => {
  const named = (name: string) => createTcpServer((socket) => socket.end(name));
  const [one, two] = [await backends.listen(named("one")), await backends.listen(named("two"))];
  const tcp = (name: string, created: string, to: string) => `---
kind: TCPRoute
metadata: { name: ${name}, creationTimestamp: ${created} }
spec:
  parentRefs: [{ name: web, sectionName: tcp }]
  rules: [{ backendRefs: [{ name: ${to}, port: 80 }] }]
`;
  await using proxy = await OneProxy.start(
    service("one", one) + service("two", two) + tcp("a", LATE, "one") + tcp("z", EARLY, "two"),
  );
  const text = await new Promise<string>((resolve, reject) => {
    let received = "";
    connect(proxy.port("bind/5000"), "127.0.0.1")
      .on("data", (bytes) => (received += bytes.toString()))
      .on("end", () => resolve(received))
      .on("error", reject);
  });
  assert.equal(text, "two");
});

test("BackendTLSPolicy: requests are sent only over verified TLS", { skip: noOpenssl }, async () => {
  using ca = new TestCa();
  const { cert, key } = ca.issue("shop.test", "spiffe://test/shop");
  let connections = 0;
  const server = createHttpsServer({ cert, key }, echo("secure"));
  server.on("connection", () => connections++);
  const port = await backends.listen(server);
  const policy = (validation: string) => `---
kind: BackendTLSPolicy
metadata: { name: shop }
spec:
  targetRefs: [{ group: "", kind: Service, name: shop }]
  validation: ${validation}
`;
  const roots = `---
kind: ConfigMap
metadata: { name: ca }
data: { ca.crt: ${JSON.stringify(ca.cert)} }
`;
  const withCa = (hostname: string, rest = "") =>
    policy(`{ hostname: ${hostname}, caCertificateRefs: [{ group: "", kind: ConfigMap, name: ca }]${rest} }`);
  const rules = "[{ backendRefs: [{ name: shop, port: 80 }] }]";
  await using proxy = await OneProxy.start(
    service("shop", port) + roots + withCa("shop.test") + route("shop", EARLY, rules),
  );
  assert.equal((await proxy.get("/")).body, "secure /");
  await proxy.apply(withCa("other.test"));
  assert.equal((await proxy.get("/")).status, 503);
  await proxy.apply(withCa("other.test", ', subjectAltNames: [{ type: URI, uri: "spiffe://test/shop" }]'));
  assert.equal((await proxy.get("/")).body, "secure /");
  const before = connections;
  await proxy.apply(policy('{ hostname: shop.test, caCertificateRefs: [{ group: "", kind: ConfigMap, name: none }] }'));
  assert.equal((await proxy.get("/")).status, 500);
  assert.equal(connections, before);
});

test("TracegateBackends: called by routes, and shown by their names", async () => {
  const port = await backends.listen(createServer(echo("legacy")));
  const backend = (to: number) => `---
kind: TracegateBackend
metadata: { name: legacy }
spec: { static: { host: 127.0.0.1, port: ${to} } }
`;
  const unused =
    "---\nkind: TracegateBackend\nmetadata: { name: unused }\nspec: { static: { host: a.test, port: 1 } }\n";
  const ref = "{ group: tracegate.dev, kind: TracegateBackend, name: legacy }";
  const rules = `[{ backendRefs: [${ref}] }, { matches: [{ path: { value: /two } }], backendRefs: [${ref}, ${ref}] }]`;
  await using proxy = await OneProxy.start(backend(port) + unused + route("legacy", EARLY, rules));
  assert.equal((await proxy.get("/two")).body, "legacy /two");
  const shown = (at: number) => {
    const [row, ...others] = endpointRows(proxy.dump());
    assert.deepEqual(
      [row?.type, row?.namespace, row?.name, row?.endpoint],
      ["Backend", "default", "legacy", `127.0.0.1:${at}`],
    );
    assert.deepEqual(others, []);
  };
  shown(port);
  await proxy.apply(backend(1));
  shown(1);
});

describe("trafficDistribution", () => {
  const node = (name: string, zone: string) =>
    `---\nkind: Node\nmetadata: { name: ${name}, namespace: "", labels: { topology.kubernetes.io/zone: ${zone} } }\n`;
  const pod = (name: string, on: string) =>
    `---\nkind: Pod\nmetadata: { name: ${name}, labels: { gateway.networking.k8s.io/gateway-name: web } }\nspec: { nodeName: ${on} }\n`;

  test("PreferClose: endpoints in the zone of the proxy's node, which the controller looks up", async () => {
    const near = await backends.listen(createServer(echo("near")));
    const far = await backends.listen(createServer(echo("far")));
    const at = (name: string, port: number, zone: string, ready = true) => `---
kind: EndpointSlice
metadata: { name: shop-${name}, labels: { kubernetes.io/service-name: shop } }
addressType: IPv4
ports: [{ name: web, port: ${port} }]
endpoints: [{ addresses: [127.0.0.1], zone: ${zone}, conditions: { ready: ${ready} } }]
`;
    const shop =
      "---\nkind: Service\nmetadata: { name: shop }\nspec: { trafficDistribution: PreferClose, ports: [{ name: web, port: 80 }] }\n";
    const rules = "[{ backendRefs: [{ name: shop, port: 80 }] }]";
    await using proxy = await OneProxy.start(
      shop + at("near", near, "b") + at("far", far, "a") + route("shop", EARLY, rules),
      { node: "n1" },
    );
    const answers = async (): Promise<string[]> => {
      const all = new Set<string>();
      for (let i = 0; i < 40; i++) all.add((await proxy.get("/")).body);
      return [...all].sort();
    };
    assert.deepEqual(await answers(), ["far /", "near /"], "nothing is known of the node");
    await proxy.apply(node("n1", "b") + node("n2", "a") + pod("web-2", "n2") + pod("web-1", "n1"));
    assert.deepEqual(await answers(), ["near /"]);
    await proxy.apply(at("near", near, "b", false));
    assert.deepEqual(await answers(), ["far /"], "another zone is better than nothing");
  });
});

test("GRPCRoute: a call over HTTP/1.1 reaches the service and method that the route names, over HTTP/2", async () => {
  const named = (name: string) =>
    GrpcServer.start({
      "/shop.Cart/Add": {
        unary: (message, metadata) => Buffer.from(`${name} ${message} ${metadata.get("x-from").join()}`),
      },
      "/shop.Cart/Fail": {
        unary: () => Promise.reject(Object.assign(new Error("no such item"), { code: 5 })),
      },
    });
  await using cart = await named("cart");
  await using test = await named("test");
  const routes = `---
kind: GRPCRoute
metadata: { name: cart }
spec:
  parentRefs: [{ name: web, sectionName: http }]
  hostnames: [a.test]
  rules:
    - matches: [{ method: { service: shop.Cart, method: Add } }]
      filters: [{ type: RequestHeaderModifier, requestHeaderModifier: { set: [{ name: x-from, value: gateway }] } }]
      backendRefs: [{ name: cart, port: 80 }]
    - matches: [{ method: { service: shop.Cart }, headers: [{ name: x-env, value: test }] }, { method: { type: RegularExpression, method: "F.*" } }]
      backendRefs: [{ name: test, port: 80 }]
`;
  await using proxy = await OneProxy.start(service("cart", cart.port) + service("test", test.port) + routes);
  const call = async (method: string, headers: Record<string, string> = {}) => {
    const sent = { "content-type": "application/grpc", te: "trailers", ...headers };
    const answer = await proxy.send("POST", method, sent, frame("milk"));
    // The response to a failed call has only a head (gRPC over HTTP/2, Trailers-Only).
    return { ...answer, code: answer.trailers["grpc-status"] ?? answer.headers["grpc-status"] };
  };
  const added = await call("/shop.Cart/Add");
  assert.deepEqual([added.status, added.code], [200, "0"]);
  assert.deepEqual(added.bytes, frame("cart milk gateway"));
  assert.deepEqual((await call("/shop.Cart/Add", { "x-env": "test" })).bytes, frame("cart milk gateway"));
  const failed = await call("/shop.Cart/Fail");
  assert.deepEqual([failed.status, failed.code], [200, "5"]);
  const [unrouted, unknown] = [await call("/shop.Cart/Remove"), await call("/shop.Cart/Remove", { "x-env": "test" })];
  assert.deepEqual([unrouted.code, unknown.code], ["12", "12"]);
  assert.match(String(unrouted.headers["grpc-message"]), /route/, "the gateway's answer, in the form of gRPC");
  assert.match(String(unknown.headers["grpc-message"]), /method/, "the service's");
});

/** A message of gRPC: not compressed, its length, its bytes. */
function frame(text: string): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(text.length, 1);
  return Buffer.concat([head, Buffer.from(text)]);
}
