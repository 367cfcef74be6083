import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { Graph } from "../../graph/graph.ts";
import type { InputKind, Inputs } from "../../graph/inputs.ts";
import { policyModel } from "./model.ts";
import { attachedPolicies } from "./policies.ts";

/** A graph with the objects of a YAML list, all in the namespace `apps`. */
function graphOf(text: string): Graph {
  const graph = new Graph();
  for (const object of parse(text) as Inputs[InputKind][]) {
    const metadata = { ...object.metadata, namespace: object.metadata.namespace ?? "apps" };
    graph.set({ ...object, metadata } as Inputs[InputKind]);
  }
  return graph;
}

function problemsOf(graph: Graph, name: string): readonly string[] {
  return graph.query(policyModel, `apps/${name}`)?.problems ?? ["absent"];
}

const JWKS =
  '{"keys":[{"crv":"Ed25519","x":"lbN_QYjypLb79ONklVMtSRADKzUW7ZWQomICXA5ETDQ","kty":"OKP","kid":"a","alg":"EdDSA"}]}';
const ROUTE = "{kind: HTTPRoute, metadata: {name: web}, spec: {rules: [{name: main}]}}";
const TARGET = "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}]";

test("policies attach to their targets by phase, and to sections apart from the whole", () => {
  const graph = graphOf(`
- ${ROUTE}
- kind: TracegatePolicy
  metadata: {name: whole}
  spec:
    ${TARGET}
    traffic: {timeout: {requestTimeout: 5s}}
    backend: {http: {requestTimeout: 1s}}
- kind: TracegatePolicy
  metadata: {name: rule}
  spec:
    targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web, sectionName: main}]
    traffic: {delay: {duration: 1s}}
`);
  assert.deepEqual(problemsOf(graph, "whole"), []);
  assert.deepEqual(graph.query(attachedPolicies, "HTTPRoute/apps/web").route.set, {
    timeout: { requestTimeout: 5000 },
  });
  assert.deepEqual(graph.query(attachedPolicies, "HTTPRoute/apps/web").backend.set, { http: { requestTimeout: 1000 } });
  assert.deepEqual(Object.keys(graph.query(attachedPolicies, "HTTPRoute/apps/web/main").route.set), ["delay"]);
  assert.deepEqual(graph.query(attachedPolicies, "HTTPRoute/apps/other").route.set, {});
});

test("texts come from Secrets and ConfigMaps, services from backendRefs", () => {
  const graph = graphOf(`
- ${ROUTE}
- {kind: Secret, metadata: {name: users}, data: {htpasswd: ${btoa("anna:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\n")}}}
- {kind: Secret, metadata: {name: keys}, data: {partner: ${btoa("k-123\n")}}}
- {kind: ConfigMap, metadata: {name: idp}, data: {jwks: '${JWKS}'}}
- {kind: Service, metadata: {name: authz}, spec: {ports: [{port: 9000}]}}
- kind: TracegatePolicy
  metadata: {name: login}
  spec:
    ${TARGET}
    traffic:
      basicAuth: {htpasswd: {secretKeyRef: {name: users, key: htpasswd}}}
      apiKey: {keys: [{key: {secretKeyRef: {name: keys, key: partner}}}]}
      jwtAuth: {issuer: https://idp.example, jwks: {configMapKeyRef: {name: idp, key: jwks}}}
      extAuthz: {backendRef: {name: authz, port: 9000}}
`);
  assert.deepEqual(problemsOf(graph, "login"), []);
  const { set: route } = graph.query(attachedPolicies, "HTTPRoute/apps/web").route;
  assert.equal(route.basicAuth?.htpasswd, "anna:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\n");
  assert.equal(route.jwtAuth?.jwks, JWKS);
  assert.deepEqual(route.extAuthz && "target" in route.extAuthz && route.extAuthz.target, {
    type: "service",
    key: "apps/authz.apps.svc.cluster.local",
    port: 9000,
  });
});

test("a missing key with the name of an object property is reported like any other", () => {
  const graph = graphOf(`
- ${ROUTE}
- {kind: Secret, metadata: {name: users}, data: {htpasswd: ""}}
- kind: TracegatePolicy
  metadata: {name: login}
  spec:
    ${TARGET}
    traffic:
      basicAuth: {htpasswd: {secretKeyRef: {name: users, key: constructor}}}
      apiKey: {keys: [{key: {secretKeyRef: {name: users, key: toString}}}]}
`);
  assert.match(problemsOf(graph, "login").join(), /key constructor|"constructor"/);
  assert.match(problemsOf(graph, "login").join(), /toString/);
});

test("a ReferenceGrant permits calls to another namespace, with the policies that are attached there", () => {
  const objects = `
- ${ROUTE}
- {kind: Service, metadata: {name: authz, namespace: auth}, spec: {ports: [{name: grpc, port: 9000}]}}
- kind: TracegatePolicy
  metadata: {name: tls, namespace: auth}
  spec:
    targetRefs: [{group: "", kind: Service, name: authz, sectionName: grpc}]
    backend: {backendTLS: {hostname: authz.example}}
- kind: TracegatePolicy
  metadata: {name: login}
  spec:
    ${TARGET}
    traffic: {extAuthz: {backendRef: {name: authz, namespace: auth, port: 9000}}}
`;
  const grant = `
- kind: ReferenceGrant
  metadata: {name: login, namespace: auth}
  spec:
    from: [{group: tracegate.dev, kind: TracegatePolicy, namespace: apps}]
    to: [{group: "", kind: Service}]
`;
  const targetOf = (graph: Graph) => {
    const { extAuthz } = graph.query(attachedPolicies, "HTTPRoute/apps/web").route.set;
    assert.ok(extAuthz !== undefined && "target" in extAuthz);
    return extAuthz;
  };
  const refused = graphOf(objects);
  assert.match(problemsOf(refused, "login").join(), /no ReferenceGrant permits the reference/);
  assert.equal(targetOf(refused).target.type, "invalid");
  const granted = graphOf(objects + grant);
  assert.deepEqual(problemsOf(granted, "login"), []);
  assert.equal(targetOf(granted).target.type, "service");
  assert.equal(targetOf(granted).policies?.backendTLS?.hostname, "authz.example");
});

test("an invalid policy that restricts access denies, even if a valid one follows", () => {
  const graph = graphOf(`
- ${ROUTE}
- kind: TracegatePolicy
  metadata: {name: broken}
  spec:
    ${TARGET}
    traffic: {jwtAuth: {issuer: i}, timeout: {requestTimeout: 5s}}
- kind: TracegatePolicy
  metadata: {name: rules}
  spec:
    ${TARGET}
    traffic: {authorization: {rules: ["true"]}}
`);
  const { authorization, timeout } = graph.query(attachedPolicies, "HTTPRoute/apps/web").route.set;
  assert.deepEqual(authorization?.rules, [
    { mode: "require", expression: 'fail("jwtAuth of TracegatePolicy apps/broken is invalid, see its status")' },
    { mode: "allow", expression: "true" },
  ]);
  assert.deepEqual(timeout, { requestTimeout: 5000 });
});

for (const [limit, problem] of [
  ["{maxTokens: many, tokensPerFill: 5, fillInterval: 1s}", /localRateLimit\[0\]\.maxTokens/],
  ["{maxTokens: 1, tokensPerFill: 5, fillInterval: 1s}", /max tokens cannot be less than the refill amount/],
  ["{maxTokens: 5, tokensPerFill: 5, fillInterval: 1s, key: nope}", /unknown variable nope/],
] as const)
  test(`a limit that cannot be built denies: ${limit}`, () => {
    const graph = graphOf(`
- ${ROUTE}
- kind: TracegatePolicy
  metadata: {name: limit}
  spec:
    ${TARGET}
    traffic: {localRateLimit: [${limit}]}
`);
    assert.match(problemsOf(graph, "limit").join(), problem);
    const { authorization, localRateLimit } = graph.query(attachedPolicies, "HTTPRoute/apps/web").route.set;
    assert.equal(localRateLimit, undefined);
    assert.deepEqual(authorization?.rules, [
      {
        mode: "require",
        expression: 'fail("localRateLimit of TracegatePolicy apps/limit is invalid, see its status")',
      },
    ]);
    assert.equal(graph.query(policyModel, "apps/limit")?.denying, true);
  });

test("names that look like references change nothing: a broken policy that denies keeps denying, and reports it", () => {
  const graph = graphOf(`
- {kind: Service, metadata: {name: authz}, spec: {ports: [{port: 80}]}}
- kind: TracegatePolicy
  metadata: {name: connections}
  spec:
    targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}]
    frontend:
      networkExtAuthz:
        backendRef: {name: authz, port: 80}
        protocol: {http: {addRequestHeaders: {"x backendRef": '"a"'}}}
`);
  const model = graph.query(policyModel, "apps/connections");
  assert.match(problemsOf(graph, "connections").join(), /"x backendRef" is not a header name/);
  assert.equal(model?.usable, false);
  assert.equal(model?.denying, true);
  assert.deepEqual(model?.frontend.networkExtAuthz?.backend, "/");
});

test("a service whose own policies are invalid is not called: without its CAs any server could respond", () => {
  const graph = graphOf(`
- ${ROUTE}
- {kind: Service, metadata: {name: authz}, spec: {ports: [{port: 80}]}}
- kind: TracegatePolicy
  metadata: {name: tls}
  spec:
    targetRefs: [{group: "", kind: Service, name: authz}]
    backend: {backendTLS: {root: {configMapKeyRef: {name: none, key: ca}}}}
- kind: TracegatePolicy
  metadata: {name: check}
  spec:
    ${TARGET}
    traffic: {extAuthz: {backendRef: {name: authz, port: 80}}}
`);
  const { extAuthz } = graph.query(attachedPolicies, "HTTPRoute/apps/web").route.set;
  assert.deepEqual(extAuthz && "target" in extAuthz && extAuthz.target.type, "invalid");
  assert.match(graph.query(policyModel, "apps/check")?.warnings.join() ?? "", /its own policies are invalid/);
  assert.match(problemsOf(graph, "tls").join(), /ConfigMap apps\/none not found/);
  // A policy of the port takes the place of the invalid one, which does no harm then.
  graph.set(
    parse(`
kind: TracegatePolicy
metadata: {namespace: apps, name: of-port}
spec:
  targetRefs: [{group: "", kind: Service, name: authz, sectionName: "80"}]
  backend: {backendTLS: {}}
`) as Inputs["TracegatePolicy"],
  );
  const replaced = graph.query(attachedPolicies, "HTTPRoute/apps/web").route.set.extAuthz;
  assert.ok(replaced && "target" in replaced);
  assert.deepEqual(replaced.target, { type: "service", key: "apps/authz.apps.svc.cluster.local", port: 80 });
  assert.notEqual(replaced.policies?.backendTLS, undefined);
});
