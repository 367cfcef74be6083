/** Objects of Kubernetes, translated, sent through the messages of the stream into a data plane, and requests to it. */
import assert from "node:assert/strict";
import { createServer, type RequestListener, request, type Server } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, connect, createServer as createTcpServer, type Server as TcpServer } from "node:net";
import { after, before, describe, test } from "node:test";
import { parseAllDocuments } from "yaml";
import { type Anything, cluster } from "../../../src/controller/translate/fixtures/cluster.ts";
import { gatewayState } from "../../../src/controller/translate/gateway-state.ts";
import { noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { packState } from "../../helpers/kube/pack-state.ts";

const GATEWAY = `
kind: Gateway
metadata: { name: web }
spec:
  gatewayClassName: tracegate
  listeners: [{ name: http, port: 8000, protocol: HTTP }, { name: tcp, port: 5000, protocol: TCP }]
`;

/** A Gateway with one proxy, which has what the controller would send it. */
class OneProxy implements AsyncDisposable {
  readonly #graph = cluster();
  readonly #plane = new TestPlane();
  #generation = 0;

  static async start(objects: string): Promise<OneProxy> {
    const proxy = new OneProxy();
    await proxy.apply(GATEWAY + objects);
    return proxy;
  }

  /** Creates or replaces objects. */
  async apply(objects: string): Promise<void> {
    const version = String(++this.#generation);
    for (const document of parseAllDocuments(objects)) {
      const { metadata, ...rest } = document.toJS() as { readonly metadata: object };
      const common = { namespace: "default", resourceVersion: version };
      this.#graph.set({ apiVersion: "", ...rest, metadata: { ...common, ...metadata } } as unknown as Anything);
    }
    const state = this.#graph.query(gatewayState, "default/web");
    assert.ok(state !== undefined);
    const packed = packState(state);
    const ports = Object.fromEntries(packed.frame.binds.map(({ key }) => [key, 0]));
    await this.#plane.plane.prepare(this.#generation, packed, ports, false);
    this.#plane.plane.commit();
  }

  port(bind = "bind/8000"): number {
    const tasks = this.#plane.plane.tasks() as { readonly bind: string; readonly port: number }[];
    return tasks.find((each) => each.bind === bind)?.port ?? 0;
  }

  async get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return await new Promise((resolve, reject) => {
      const options = {
        host: "127.0.0.1",
        port: this.port(),
        path,
        agent: false,
        headers: { host: "a.test", ...headers },
      };
      request(options, (response) => {
        let body = "";
        response.setEncoding("utf8").on("data", (text: string) => (body += text));
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, body, location: response.headers.location ?? "" }),
        );
      })
        .on("error", reject)
        .end();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#plane[Symbol.asyncDispose]();
  }
}

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly location: string;
}

const servers: (Server | TcpServer)[] = [];
after(() => {
  for (const server of servers) server.close();
});

async function listening(server: Server | TcpServer): Promise<number> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

/** A server that answers with its name, the path and one header of the request. */
const echo =
  (name: string): RequestListener =>
  (incoming, response) =>
    response.end(`${name} ${incoming.url} ${incoming.headers["x-added"] ?? ""}`.trim());

/** A Service whose port 80 is a port of this machine. */
function service(name: string, port: number): string {
  return `---
kind: Service
metadata: { name: ${name} }
spec: { ports: [{ name: web, port: 80 }] }
${slice(name, port)}`;
}

function slice(name: string, port: number): string {
  return `---
kind: EndpointSlice
metadata: { name: ${name}, labels: { kubernetes.io/service-name: ${name} } }
addressType: IPv4
ports: [{ name: web, port: ${port} }]
endpoints: [{ addresses: [127.0.0.1], conditions: { ready: true } }]
`;
}

function route(name: string, created: string, rules: string): string {
  return `---
kind: HTTPRoute
metadata: { name: ${name}, creationTimestamp: ${created} }
spec:
  parentRefs: [{ name: web, sectionName: http }]
  hostnames: [a.test]
  rules: ${rules}
`;
}

const EARLY = "2026-01-01T00:00:00Z";
const LATE = "2026-01-02T00:00:00Z";

describe("HTTPRoutes", () => {
  let one: number;
  let two: number;
  before(async () => {
    one = await listening(createServer(echo("one")));
    two = await listening(createServer(echo("two")));
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
      sessionPersistence: { type: Cookie }
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

  test("a backend that cannot be called answers for its share", async () => {
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

  test("of two routes that match the same, the older one is used", async () => {
    const to = (name: string) => `[{ backendRefs: [{ name: ${name}, port: 80 }] }]`;
    await using proxy = await OneProxy.start(
      service("one", one) + service("two", two) + route("a", LATE, to("one")) + route("z", EARLY, to("two")),
    );
    assert.equal((await proxy.get("/")).body, "two /");
  });

  test("requests follow endpoints that move", async () => {
    const rules = "[{ backendRefs: [{ name: shop, port: 80 }] }]";
    await using proxy = await OneProxy.start(service("shop", one) + route("shop", EARLY, rules));
    assert.equal((await proxy.get("/")).body, "one /");
    await proxy.apply(slice("shop", two));
    assert.equal((await proxy.get("/")).body, "two /");
  });
});

test("of two TCPRoutes of a listener the older one is used", async () => {
  const named = (name: string) => createTcpServer((socket) => socket.end(name));
  const [one, two] = [await listening(named("one")), await listening(named("two"))];
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

test("BackendTLSPolicy: TLS that is verified, or nothing at all", { skip: noOpenssl }, async () => {
  using ca = new TestCa();
  const { cert, key } = ca.issue("shop.test", "spiffe://test/shop");
  let connections = 0;
  const server = createHttpsServer({ cert, key }, echo("secure"));
  server.on("connection", () => connections++);
  const port = await listening(server);
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
