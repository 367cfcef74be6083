import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import type { Graph } from "../../graph/graph.ts";
import { hostRules } from "../../graph/inputs.ts";
import { desiredStatuses } from "../../status/statuses.ts";
import { backendModel } from "../backends/backends.ts";
import { type Anything, cluster } from "../fixtures/cluster.ts";
import { gatewayState } from "../gateway-state.ts";
import { policyModel } from "../policy/model.ts";

const OBJECTS = `
- {kind: Service, metadata: {namespace: victim, name: shop}, spec: {clusterIP: 10.96.0.7, clusterIPs: [10.96.0.7, "fd00::7"], ports: [{port: 80}]}}
- {kind: Service, metadata: {namespace: apps, name: own}, spec: {clusterIP: 10.96.0.8, ports: [{port: 80}]}}
- {kind: Pod, metadata: {namespace: victim, name: shop-1}, status: {podIP: 10.244.0.5, podIPs: [{ip: 10.244.0.5}]}}
- {kind: EndpointSlice, addressType: IPv4, metadata: {namespace: default, name: kubernetes}, endpoints: [{addresses: [198.51.100.1]}], ports: []}
`;

function graphOf(text: string): Graph {
  return cluster(...(parse(OBJECTS + text) as Anything[]));
}

function backendTo(host: string): string {
  return `- {kind: TracegateBackend, metadata: {namespace: apps, name: b}, spec: {static: {host: "${host}", port: 80}}}`;
}

const INSIDE = [
  "shop.victim.svc.cluster.local",
  "SHOP.Victim.SVC.Cluster.Local",
  "shop.victim.svc.cluster.local.",
  "shop.victim.svc.cluster.local..",
  "shop.victim.svc",
  "shop.victim",
  "web-0.shop.victim",
  "_http._tcp.shop.victim",
  "10-244-0-5.victim.pod.cluster.local",
  "10-244-0-5.victim.pod",
  "own.apps.svc.cluster.local",
  "kubernetes",
  "kubernetes.default.svc",
  "localhost",
  "10.96.0.7",
  "10.244.0.5",
  "198.51.100.1",
  "fd00::7",
  "FD00:0:0::0007",
  "::ffff:10.244.0.5",
  "0x0af40005",
  "183762949",
  "10.244.5",
  "10.244.0.5.",
];

for (const host of INSIDE)
  test(`a TracegateBackend cannot name ${host}, and its status says what to do`, () => {
    const graph = graphOf(backendTo(host));
    const model = graph.query(backendModel, "apps/b");
    assert.equal(model?.target.type, "invalid");
    assert.match(
      model.problems.join(),
      /^spec\.static\.host: .*use backendRef, with a ReferenceGrant .*allowClusterHosts$/,
    );
    const status = graph.query(desiredStatuses, "").find(({ kind }) => kind === "TracegateBackend")?.status;
    assert.ok(status !== undefined && "conditions" in status);
    assert.equal(status.conditions[0]?.reason, "HostNotAllowed");
    graph.set(hostRules({ allowClusterHosts: true, domains: ["cluster.local"], denyNetworks: [] }));
    assert.equal(graph.query(backendModel, "apps/b")?.target.type, "static");
  });

for (const host of ["api.example.com", "svc.example.com", "example.com.", "192.0.2.1", "2001:db8::1", "10.96.0.8"])
  test(`a TracegateBackend can name ${host}`, () => {
    assert.deepEqual(graphOf(backendTo(host)).query(backendModel, "apps/b")?.problems, []);
  });

test("an address is refused from the moment at which a pod of another namespace has it", () => {
  const graph = graphOf(backendTo("10.244.9.9"));
  assert.equal(graph.query(backendModel, "apps/b")?.target.type, "static");
  const [pod] = parse(
    "- {kind: Pod, metadata: {namespace: victim, name: late}, status: {podIP: 10.244.9.9}}",
  ) as Anything[];
  assert.ok(pod);
  graph.set(pod);
  assert.equal(graph.query(backendModel, "apps/b")?.target.type, "invalid");
  graph.delete("Pod", "victim/late");
  assert.equal(graph.query(backendModel, "apps/b")?.target.type, "static");
});

test("the domain of the cluster and the networks that the operator excludes count, whatever is allowed", () => {
  const graph = graphOf(backendTo("shop.victim.svc.corp.example"));
  assert.equal(graph.query(backendModel, "apps/b")?.target.type, "static");
  graph.set(hostRules({ allowClusterHosts: false, domains: ["corp.example"], denyNetworks: [] }));
  assert.equal(graph.query(backendModel, "apps/b")?.target.type, "invalid");
  const other = graphOf(backendTo("10.1.2.3"));
  other.set(hostRules({ allowClusterHosts: true, domains: [], denyNetworks: ["10.0.0.0/8"] }));
  assert.match(other.query(backendModel, "apps/b")?.problems.join() ?? "", /in a network that the operator excludes/);
  const inside = graphOf(backendTo("64:ff9b::10.1.2.3"));
  inside.set(hostRules({ allowClusterHosts: true, domains: [], denyNetworks: ["10.0.0.0/8"] }));
  assert.match(inside.query(backendModel, "apps/b")?.problems.join() ?? "", /in a network that the operator excludes/);
});

/** Every place of a policy in which an author can write a host or a URL that is called. */
const CALLS: Readonly<Record<string, string>> = {
  extAuthz: "traffic: {extAuthz: {host: HOST}}",
  extProc: "traffic: {extProc: {host: HOST}}",
  remoteRateLimit:
    "traffic: {remoteRateLimit: {host: HOST, domain: d, descriptors: [{entries: [{key: a, value: request.path}]}]}}",
  requestMirror: "traffic: {requestMirror: [{backend: {host: HOST}, percentage: 1}]}",
  networkExtAuthz: "frontend: {networkExtAuthz: {host: HOST}}",
  tracing: "frontend: {tracing: {host: HOST}}",
  accessLog: "frontend: {accessLog: {otlp: {host: HOST}}}",
  backendTunnel: "backend: {backendTunnel: {proxy: {host: HOST}}}",
  nested: "traffic: {extAuthz: {host: 'a.example:80', policies: {backendTunnel: {proxy: {host: HOST}}}}}",
  conditional: "traffic: {extAuthz: {conditional: [{condition: 'true', host: HOST}]}}",
  tokenExchange: "backend: {backendAuth: {oauthTokenExchange: {host: HOST, path: /token}}}",
  jwks: "traffic: {jwtAuth: {issuer: i, jwks: {url: 'http://NAME/keys'}}}",
  oidc: "traffic: {oidc: {issuer: 'http://NAME', clientId: a, clientSecret: b, redirectURI: 'https://a.example/cb'}}",
  tokenEndpoint:
    "traffic: {oidc: {issuer: 'https://a.example', authorizationEndpoint: 'https://a.example/a', tokenEndpoint: 'http://NAME/t', jwks: '{\"keys\":[]}', clientId: a, clientSecret: b, redirectURI: 'https://a.example/cb'}}",
};

for (const [name, section] of Object.entries(CALLS))
  test(`${name} of a policy cannot call a host inside the cluster`, () => {
    for (const host of ["shop.victim.svc.cluster.local", "10.244.0.5"]) {
      const spec = section.replaceAll("HOST", `"${host}:80"`).replaceAll("NAME", host);
      const graph = graphOf(`
- {kind: Gateway, metadata: {namespace: apps, name: web}, spec: {gatewayClassName: tracegate, listeners: [{name: http, port: 80, protocol: HTTP}]}}
- {kind: TracegatePolicy, metadata: {namespace: apps, name: p}, spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}], ${spec}}}
`);
      const model = graph.query(policyModel, "apps/p");
      assert.match(model?.problems.join("\n") ?? "", /allowClusterHosts/, `${name}: ${host}`);
      assert.deepEqual(
        model?.urls.filter((url) => url.includes(host)),
        [],
      );
      const state = JSON.stringify(
        [...(graph.query(gatewayState, "apps/web")?.resources.values() ?? [])].filter(({ kind }) => kind !== "policy"),
      );
      assert.doesNotMatch(state, new RegExp(`"host":"${host}"|http://${host}`));
    }
  });

test("a route to such a TracegateBackend gets 500, and says that the reference is not permitted", () => {
  const graph = graphOf(`
${backendTo("shop.victim.svc.cluster.local")}
- {kind: Gateway, metadata: {namespace: apps, name: web}, spec: {gatewayClassName: tracegate, listeners: [{name: http, port: 80, protocol: HTTP}]}}
- {kind: HTTPRoute, metadata: {namespace: apps, name: r}, spec: {parentRefs: [{name: web}], rules: [{backendRefs: [{group: tracegate.dev, kind: TracegateBackend, name: b}]}]}}
`);
  const status = JSON.stringify(graph.query(desiredStatuses, "").find(({ kind }) => kind === "HTTPRoute")?.status);
  assert.match(status, /"RefNotPermitted"/);
  assert.doesNotMatch(
    JSON.stringify([...(graph.query(gatewayState, "apps/web")?.resources.values() ?? [])]),
    /"static"/,
  );
});
