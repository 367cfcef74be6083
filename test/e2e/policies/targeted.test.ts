import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer, RawUpstream } from "../../helpers/raw-peer.ts";
import { type Call, call, traceOf, Upstream } from "../trace/support.ts";

const SERVICE = { namespace: "shop", hostname: "cart" };
const GATEWAY = { gatewayName: "default" };

/** The narrowest place of a header wins. */
const header = (value: string): object => ({ requestHeaderModifier: { set: { "x-from": value } } });
const backendHeader = (value: string): object => ({
  transformations: { request: { set: { "x-backend-from": `'${value}'` } } },
});
const route = (name: string, more: object): object => ({ name, matches: [{ path: { exact: `/${name}` } }], ...more });
const entries = (policies: readonly (readonly [target: object, policy: object, phase?: string])[]): object[] =>
  policies.map(([target, policy, phase = "route"], i) => ({ name: { name: `p${i}` }, target, phase, policy }));

let upstream: Upstream;
let gateway: TestGateway;

before(async () => {
  upstream = await Upstream.start();
  for (const path of ["/route", "/port", "/inline", "/named"])
    upstream.on(path, ({ headers }, response) => response.end(`${headers["x-from"]} ${headers["x-backend-from"]}`));
  const service = (port: number): object => ({ service: { name: "shop/cart", port } });
  const routes = [
    route("route", { backends: [service(80)] }),
    route("port", { backends: [service(81)] }),
    route("named", { backends: [{ backend: "/named" }] }),
    route("inline", {
      policies: header("inline"),
      backends: [{ backend: "/named", policies: backendHeader("inline") }],
    }),
  ];
  const conditional = [{ condition: 'request.path == "/named"', status: 203, bodyExpression: "request.method" }];
  gateway = await TestGateway.start({
    binds: [{ port: 0, listeners: [{ name: "web", routes }] }],
    backends: [{ name: "named", host: upstream.address }],
    services: [{ ...SERVICE, name: "cart", ports: { 80: upstream.port, 81: upstream.port } }],
    workloads: [{ uid: "a", name: "a", namespace: "shop", workloadIps: ["127.0.0.1"], services: { "shop/cart": {} } }],
    policies: entries([
      [{ gateway: GATEWAY }, { authorization: { rules: [{ deny: '"x-blocked" in request.headers' }] } }, "gateway"],
      [{ gateway: { ...GATEWAY, listenerName: "web" } }, { cors: { allowOrigins: ["https://a.example"] } }, "gateway"],
      [{ gateway: GATEWAY }, header("gateway")],
      [{ route: { name: "route", kind: "HTTPRoute" } }, header("route")],
      [{ backend: { service: SERVICE } }, backendHeader("service")],
      [{ backend: { service: { ...SERVICE, port: 81 } } }, backendHeader("port")],
      [{ backend: { backend: { name: "named" } } }, backendHeader("named")],
      [{ route: { name: "named" } }, { directResponse: { conditional } }],
    ]),
  });
});
after(async () => {
  await gateway.stop();
  await upstream.close();
});

async function ask(path: string, more: Call = {}): Promise<string> {
  const { status, body } = await call(gateway.port(), { path, ...more });
  return `${status} ${body.toString()}`;
}

test("the policy with the narrowest target applies, and inline policies win over all", async () => {
  assert.equal(await ask("/route"), "200 route service");
  assert.equal(await ask("/port"), "200 gateway port");
  assert.equal(await ask("/inline"), "200 inline inline");
  assert.equal(await ask("/named", { method: "PUT" }), "203 PUT");
});

test("policies of the gateway phase run before a route is matched", async () => {
  assert.equal(await ask("/nowhere"), "404 route not found");
  assert.equal(await ask("/nowhere", { headers: { "x-blocked": "1" } }), "403 authorization failed");
  const origin = "https://a.example";
  const preflight = await call(gateway.port(), {
    path: "/nowhere",
    method: "OPTIONS",
    headers: { origin, "access-control-request-method": "GET" },
  });
  assert.deepEqual([preflight.status, preflight.headers["access-control-allow-origin"]], [200, origin]);
});

test("a trace shows what was in effect in each phase", async () => {
  const events = await traceOf(gateway, () => ask("/port"));
  const policies = events.flatMap(({ message }) =>
    message.type === "policySelection" ? [[message.phase, message.effectivePolicy] as const] : [],
  );
  const set = new Map(
    policies.map(([phase, policy]) => [
      phase,
      Object.entries(policy as object).flatMap(([kind, value]) => (value === null ? [] : [kind])),
    ]),
  );
  assert.deepEqual(set.get("gateway")?.sort(), ["authorization", "cors"]);
  assert.deepEqual(set.get("route"), ["requestHeaderModifier"]);
  assert.deepEqual(set.get("backend"), ["transformation"]);
});

test("connections without HTTP get the policies of backends", async () => {
  await using backend = await RawUpstream.listen();
  await using tcp = await LocalGateway.start({
    gateways: { wire: { port: 0, protocol: "TCP" } },
    tcpRoutes: [{ name: "wire", gateways: "wire", backends: [{ host: `127.0.0.1:${backend.port}` }] }],
    policies: entries([[{ gateway: { gatewayName: "wire" } }, { backendTLS: { insecure: true } }]]),
  });
  await RawPeer.connect(tcp.port());
  const connection = await backend.connection();
  // The first byte of a TLS handshake (RFC 8446 5.1).
  await connection.take("\x16");
});
