import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { call, traceOf, Upstream } from "../trace/support.ts";

const HTPASSWD = "alice:{SHA}QYJmB5F+iVrWAUm43BYdcOjb3uU=";

let upstream: Upstream;
let gateway: TestGateway;

/** Policies of each phase in the reverse of the order that they must run in: what the file says must not matter. */
function reversed(policies: object): object {
  return Object.fromEntries(Object.entries(policies).reverse());
}

before(async () => {
  upstream = await Upstream.start();
  upstream.on("/authorize", (_request, response) => response.end());
  const extAuthz = { host: upstream.address, protocol: { http: { path: "'/authorize'" } } };
  const always = { rules: ["true"] };
  const set = { set: { "x-set": "1" } };
  /** A transformation that says when it has run, on both sides. */
  const transformations = (by: string): object => ({
    request: { set: { "x-by": `'${by}'` } },
    response: { set: { "x-path": `response.headers["x-path"] + ", ${by}"` } },
  });
  const gatewayPolicies = {
    cors: { allowOrigins: ["https://page.example"] },
    basicAuth: { mode: "optional", htpasswd: HTPASSWD },
    apiKey: { mode: "optional", keys: [{ key: "k" }] },
    extAuthz,
    authorization: always,
    transformations: transformations("gateway"),
  };
  const routePolicies = {
    cors: { allowOrigins: ["https://page.example"] },
    basicAuth: { mode: "optional", htpasswd: HTPASSWD },
    apiKey: { mode: "optional", keys: [{ key: "k" }] },
    extAuthz,
    authorization: always,
    retry: { attempts: 1, codes: [503] },
    localRateLimit: [{ maxTokens: 1000, tokensPerFill: 1, fillInterval: "1s" }],
    buffer: { request: {} },
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
  gateway = await TestGateway.start({ binds: [{ port: 0, listeners }] });
});
after(async () => {
  await gateway.stop();
  await upstream.close();
});

test("the policies of each phase run in their own order, whatever the order of the file", async () => {
  let path: unknown;
  const events = await traceOf(gateway, async () => {
    const { status, headers } = await call(gateway.port(), {});
    assert.equal(status, 200);
    path = headers["x-path"];
  });
  const stages = events.flatMap(({ message }) => (message.type === "requestSnapshot" ? [message.stage] : []));
  const common = ["cors", "basic auth", "api key", "ext authz", "authorization"];
  assert.deepEqual(stages, [
    "initial request",
    ...[...common, "transformation", "policies"].map((each) => `gateway ${each}`),
    ...common,
    ...["retry", "local rate limit", "buffer", "transformation", "csrf", "request header modifier"],
    ...["url rewrite", "delay", "request mirror", "route policies"],
    ...["authorization", "ext authz", "auth", "transformation", "request header modifier"].map(
      (each) => `backend ${each}`,
    ),
    "final request",
  ]);
  // Responses pass the phases from the inside to the outside.
  assert.equal(path, "modifier, route, backend, gateway");
});
