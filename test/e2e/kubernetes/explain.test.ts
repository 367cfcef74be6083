/** Explanations of what a proxy gets from the controller: each step says which field of which object decided. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAllDocuments } from "yaml";
import { formatOrigin } from "../../../src/base/origin.ts";
import { type Anything, cluster } from "../../../src/controller/translate/fixtures/cluster.ts";
import { gatewayState } from "../../../src/controller/translate/gateway-state.ts";
import { requestOf } from "../../../src/rehearsal/curl.ts";
import { explain } from "../../../src/rehearsal/explain.ts";
import { Rehearsal } from "../../../src/rehearsal/rehearsal.ts";
import type { Step } from "../../../src/trace/steps.ts";
import { packState } from "../../helpers/kube/pack-state.ts";

const SETTINGS = { sensitiveHeaders: [], perRequest: 1_000_000, sessionKey: new Uint8Array(32) };

const OBJECTS = `
kind: Gateway
metadata: { namespace: shop, name: edge }
spec:
  gatewayClassName: tracegate
  listeners:
    - { name: inner, port: 80, protocol: HTTP, hostname: inner.test }
    - { name: web, port: 80, protocol: HTTP, hostname: "*.shop.test" }
    - { name: mail, port: 25, protocol: TCP }
---
kind: HTTPRoute
metadata: { namespace: shop, name: web }
spec:
  parentRefs: [{ name: edge, sectionName: web }]
  rules:
    - matches: [{ path: { value: /admin } }]
    - matches: [{ path: { value: / } }]
      filters:
        - { type: RequestHeaderModifier, requestHeaderModifier: { set: [{ name: x-shop, value: "1" }] } }
      backendRefs:
        - name: web
          port: 80
          filters: [{ type: ResponseHeaderModifier, responseHeaderModifier: { remove: [server] } }]
---
kind: TCPRoute
metadata: { namespace: shop, name: mail }
spec:
  parentRefs: [{ name: edge, sectionName: mail }]
  rules: [{ backendRefs: [{ name: web, port: 80 }] }]
---
kind: TracegatePolicy
metadata: { namespace: shop, name: admins }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: web }]
  traffic:
    authorization: { rules: [{ deny: 'request.path == "/none"' }, { require: '"x-admin" in request.headers' }] }
---
kind: TracegatePolicy
metadata: { namespace: shop, name: everyone }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: Gateway, name: edge }]
  traffic:
    cors: { allowOrigins: ["https://shop.test"] }
    authorization: { rules: [{ deny: 'request.method == "TRACE"' }] }
---
kind: TracegatePolicy
metadata: { namespace: shop, name: gate }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: Gateway, name: edge, sectionName: inner }]
  traffic:
    phase: PreRouting
    cors: { allowOrigins: ["https://shop.test"] }
    authorization: { rules: [{ require: "false" }] }
---
kind: HTTPRoute
metadata: { namespace: shop, name: broken }
spec:
  parentRefs: [{ name: edge, sectionName: web }]
  rules: [{ matches: [{ path: { type: Exact, value: /broken } }] }]
---
kind: TracegatePolicy
metadata: { namespace: shop, name: broken }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: broken }]
  strategy: { inheritance: Override }
  traffic: { jwtAuth: { issuer: x } }
---
kind: Service
metadata: { namespace: shop, name: web }
spec: { ports: [{ port: 80, targetPort: 8080 }] }
---
kind: EndpointSlice
metadata: { namespace: shop, name: web, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 8080 }]
endpoints: [{ addresses: [198.18.0.1] }]
`;

/** The origins of the steps of the first outcome: `route web.01.http: HTTPRoute shop/web spec.rules[1]`. */
async function origins(...request: string[]): Promise<string[]> {
  const objects = parseAllDocuments(OBJECTS).map((each) => each.toJS() as Anything);
  const state = cluster(...objects).query(gatewayState, "shop/edge");
  assert.ok(state !== undefined);
  const rehearsal = new Rehearsal(packState(state), SETTINGS);
  try {
    const { outcomes } = await explain(rehearsal, { request: requestOf(request) });
    return originsOf(outcomes[0]?.steps ?? []);
  } finally {
    rehearsal.close();
  }
}

function originsOf(steps: readonly Step[]): string[] {
  return steps.flatMap(({ kind, name, origin, steps: inner }) => [
    ...(origin === undefined ? [] : [`${kind} ${name}: ${formatOrigin(origin)}`]),
    ...originsOf(inner),
  ]);
}

test("each step of a request names the field of the object that decided", async () => {
  const admins = "TracegatePolicy shop/admins spec.traffic.authorization";
  const everyone = "TracegatePolicy shop/everyone spec.traffic";
  assert.deepEqual(await origins("http://a.shop.test/cart", "-H", "x-admin: 1"), [
    "listener web: Gateway shop/edge spec.listeners[1]",
    "listener inner: Gateway shop/edge spec.listeners[0]",
    "route HTTPRoute shop/web rules[1]: HTTPRoute shop/web spec.rules[1]",
    "route HTTPRoute shop/broken rules[0]: HTTPRoute shop/broken spec.rules[0]",
    "route HTTPRoute shop/web rules[0]: HTTPRoute shop/web spec.rules[0]",
    `policy cors: ${everyone}.cors`,
    // As a whole it is in no one place.
    `rule deny request.method == "TRACE": ${everyone}.authorization.rules[0]`,
    `rule deny request.path == "/none": ${admins}.rules[0]`,
    `rule require "x-admin" in request.headers: ${admins}.rules[1]`,
    "policy requestHeaderModifier: HTTPRoute shop/web spec.rules[1].filters[0]",
    "policy responseHeaderModifier: HTTPRoute shop/web spec.rules[1].backendRefs[0].filters[0]",
  ]);
});

test("policies of a listener come from the object that is attached to it, authorization as a whole too", async () => {
  const gate = "TracegatePolicy shop/gate spec.traffic";
  assert.deepEqual(await origins("http://inner.test/"), [
    "listener inner: Gateway shop/edge spec.listeners[0]",
    "listener web: Gateway shop/edge spec.listeners[1]",
    `policy cors: ${gate}.cors`,
    `policy authorization: ${gate}.authorization`,
    `rule require false: ${gate}.authorization.rules[0]`,
  ]);
  const preflight = ["-H", "origin: https://shop.test", "-H", "access-control-request-method: GET"];
  assert.deepEqual((await origins("OPTIONS", "http://inner.test/", ...preflight)).slice(2), [
    `policy cors: ${gate}.cors`,
    // It is not reached.
    `policy authorization: ${gate}.authorization`,
  ]);
});

test("what takes the place of an invalid policy names that one", async () => {
  assert.deepEqual((await origins("http://a.shop.test/broken")).slice(-1), [
    'rule require fail("jwtAuth of TracegatePolicy shop/broken is invalid, see its status"): TracegatePolicy shop/broken spec.traffic.jwtAuth',
  ]);
});

test("so do those of a connection, and listeners that do not fit", async () => {
  assert.deepEqual(await origins("tcp://edge:25"), [
    "listener mail: Gateway shop/edge spec.listeners[2]",
    "route TCPRoute shop/mail rules[0]: TCPRoute shop/mail spec.rules[0]",
  ]);
  assert.deepEqual(await origins("http://other.test/"), [
    "listener inner: Gateway shop/edge spec.listeners[0]",
    "listener web: Gateway shop/edge spec.listeners[1]",
  ]);
});
