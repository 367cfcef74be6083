/** The objects of tracegate.dev on a real cluster: policies and backends, and what becomes of objects that make no sense. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { get } from "./lib/http.ts";
import { echoYaml, gatewayYaml, namespaceYaml, routeYaml } from "./lib/objects.ts";
import { apply, eventually, gatewayAddress, getJson, kubectl, run } from "./lib/tools.ts";

const NS = "e2e-policies";
const HOST = "www.example.com";
let address = "";

before(async () => {
  await apply(
    namespaceYaml(NS) +
      echoYaml(NS, "echo") +
      gatewayYaml(NS, "web") +
      routeYaml(NS, "main", "web", HOST, "/main", "echo") +
      routeYaml(NS, "keyed", "web", HOST, "/keyed", "echo"),
  );
  address = await gatewayAddress(NS, "web");
  await eventually("traffic", async () => (await get({ address, host: HOST, path: "/main" })).status === 200);
});

after(() => kubectl("delete", "namespace", NS, "--wait=false"));

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

interface WithConditions {
  readonly status?: {
    readonly conditions?: readonly Condition[];
    readonly parents?: readonly { readonly conditions: readonly Condition[] }[];
    readonly ancestors?: readonly { readonly conditions: readonly Condition[] }[];
    readonly listeners?: readonly { readonly name: string; readonly conditions: readonly Condition[] }[];
  };
}

/** A condition of an object, or of its first parent or ancestor. */
function conditionOf({ status }: WithConditions, type: string): Condition | undefined {
  const conditions = status?.parents?.[0]?.conditions ?? status?.ancestors?.[0]?.conditions ?? status?.conditions;
  return conditions?.find((each) => each.type === type);
}

function condition(kind: string, name: string, type: string, status: string): Promise<Condition> {
  return eventually(`${type}=${status} of ${kind} ${name}`, async () => {
    const found = conditionOf(await getJson<WithConditions>("-n", NS, kind, name), type);
    return found?.status === status ? found : undefined;
  });
}

test("a policy takes effect on its route, is Attached, and ends with its object", async () => {
  await apply(`
apiVersion: v1
kind: Secret
metadata: {name: keys, namespace: ${NS}}
stringData: {alice: correct-horse}
---
apiVersion: tracegate.dev/v1alpha1
kind: TracegatePolicy
metadata: {name: keys, namespace: ${NS}}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: keyed}]
  traffic:
    apiKey:
      mode: strict
      keys: [{key: {secretKeyRef: {name: keys, key: alice}}}]
`);
  await condition("tracegatepolicy", "keys", "Attached", "True");
  await eventually("401", async () => (await get({ address, host: HOST, path: "/keyed" })).status === 401);
  const authorization = "Bearer correct-horse";
  assert.equal((await get({ address, host: HOST, path: "/keyed", headers: { authorization } })).status, 200);
  assert.equal((await get({ address, host: HOST, path: "/main" })).status, 200);
  await kubectl("-n", NS, "delete", "tracegatepolicy", "keys");
  await eventually("200", async () => (await get({ address, host: HOST, path: "/keyed" })).status === 200);
});

test("a policy of the Gateway applies to all its routes", async () => {
  await apply(`
apiVersion: tracegate.dev/v1alpha1
kind: TracegatePolicy
metadata: {name: headers, namespace: ${NS}}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}]
  traffic: {responseHeaderModifier: {set: {x-policy: everywhere}}}
`);
  for (const path of ["/main", "/keyed"])
    await eventually(path, async () => (await get({ address, host: HOST, path })).headers["x-policy"] === "everywhere");
  await kubectl("-n", NS, "delete", "tracegatepolicy", "headers");
});

test("of two policies for one target, the older applies, and the younger is Overridden", async () => {
  const policy = (name: string) => `
apiVersion: tracegate.dev/v1alpha1
kind: TracegatePolicy
metadata: {name: ${name}, namespace: ${NS}}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: main}]
  traffic: {responseHeaderModifier: {set: {x-policy: ${name}}}}
`;
  await apply(policy("b-older"));
  // Creation times are in seconds.
  await new Promise((resolve) => setTimeout(resolve, 1100));
  await apply(policy("a-younger"));
  await eventually(
    "the older",
    async () => (await get({ address, host: HOST, path: "/main" })).headers["x-policy"] === "b-older",
  );
  const { status } = await eventually("its status", async () => {
    const found = await getJson<WithConditions>("-n", NS, "tracegatepolicy", "a-younger");
    return JSON.stringify(found.status ?? {}).includes("b-older") ? found : undefined;
  });
  assert.match(JSON.stringify(status), /b-older/);
  await kubectl("-n", NS, "delete", "tracegatepolicy", "b-older", "a-younger");
});

test("an XBackendTrafficPolicy keeps a session at one pod of its Service", async () => {
  await apply(
    echoYaml(NS, "many", 3) +
      routeYaml(NS, "many", "web", HOST, "/many", "many") +
      `
---
apiVersion: gateway.networking.x-k8s.io/v1alpha1
kind: XBackendTrafficPolicy
metadata: {name: many, namespace: ${NS}}
spec:
  targetRefs: [{group: "", kind: Service, name: many}]
  sessionPersistence: {sessionName: many}
  retryConstraint: {}
`,
  );
  const podOf = async (cookie = ""): Promise<{ readonly pod: string; readonly cookie: string }> => {
    const { status, headers, body } = await get({ address, host: HOST, path: "/many", headers: { cookie } });
    assert.equal(status, 200, body);
    return {
      pod: (JSON.parse(body) as { pod: string }).pod,
      cookie: headers["set-cookie"]?.[0]?.split(";", 1)[0] ?? "",
    };
  };
  const pods = new Set<string>();
  await eventually("three pods", async () => pods.add((await podOf()).pod).size === 3);
  const { pod, cookie } = await eventually("a session", async () => {
    const found = await podOf();
    return found.cookie.startsWith("many=") && found;
  });
  for (let i = 0; i < 20; i++) assert.equal((await podOf(cookie)).pod, pod);
  await condition("xbackendtrafficpolicy", "many", "Accepted", "True");
  await kubectl("-n", NS, "delete", "xbackendtrafficpolicy", "many");
  await eventually("no more sessions", async () => (await podOf()).cookie === "");
});

test("a route can send requests to an address by a TracegateBackend, and none to a name inside the cluster", async () => {
  const clusterIp = await kubectl("-n", NS, "get", "service", "echo", "-o", "jsonpath={.spec.clusterIP}");
  await apply(
    `
apiVersion: tracegate.dev/v1alpha1
kind: TracegateBackend
metadata: {name: outside, namespace: ${NS}}
spec: {static: {host: ${clusterIp}, port: 80}}
---
apiVersion: tracegate.dev/v1alpha1
kind: TracegateBackend
metadata: {name: inside, namespace: ${NS}}
spec: {static: {host: kubernetes.default.svc.cluster.local, port: 443}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: outside, namespace: ${NS}}
spec:
  parentRefs: [{name: web}]
  hostnames: [${HOST}]
  rules:
    - matches: [{path: {type: PathPrefix, value: /outside}}]
      backendRefs: [{group: tracegate.dev, kind: TracegateBackend, name: outside}]
    - matches: [{path: {type: PathPrefix, value: /inside}}]
      backendRefs: [{group: tracegate.dev, kind: TracegateBackend, name: inside}]
`,
  );
  await eventually("200", async () => (await get({ address, host: HOST, path: "/outside" })).status === 200);
  assert.equal((await get({ address, host: HOST, path: "/inside" })).status, 500);
});

test("invalid objects have conditions that say so, and the rest of the Gateway is served", async () => {
  await apply(
    `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: bad-regex, namespace: ${NS}}
spec:
  parentRefs: [{name: web}]
  hostnames: [${HOST}]
  rules:
    - matches: [{path: {type: RegularExpression, value: "/[a"}}]
      backendRefs: [{name: echo, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: no-service, namespace: ${NS}}
spec:
  parentRefs: [{name: web}]
  hostnames: [${HOST}]
  rules:
    - matches: [{path: {type: PathPrefix, value: /missing}}]
      backendRefs: [{name: nowhere, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: not-granted, namespace: ${NS}}
spec:
  parentRefs: [{name: web}]
  hostnames: [${HOST}]
  rules:
    - matches: [{path: {type: PathPrefix, value: /foreign}}]
      backendRefs: [{name: kubernetes, namespace: default, port: 443}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: broken, namespace: ${NS}}
spec:
  gatewayClassName: tracegate
  listeners:
    - {name: http, port: 80, protocol: HTTP}
    - {name: admin, port: 15000, protocol: HTTP}
    - {name: no-secret, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: nowhere}]}}
    - {name: bad-secret, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: bad}]}}
---
apiVersion: v1
kind: Secret
metadata: {name: bad, namespace: ${NS}}
type: kubernetes.io/tls
stringData: {tls.crt: this is no certificate, tls.key: nor is this a key}
`,
  );
  const regex = await condition("httproute", "bad-regex", "Accepted", "False");
  assert.equal(regex.reason, "UnsupportedValue");
  assert.match(regex.message, /\[a/);
  const missing = await condition("httproute", "no-service", "ResolvedRefs", "False");
  assert.equal(missing.reason, "BackendNotFound");
  assert.match(missing.message, /nowhere/);
  assert.equal((await condition("httproute", "not-granted", "ResolvedRefs", "False")).reason, "RefNotPermitted");
  await eventually("500", async () => (await get({ address, host: HOST, path: "/missing" })).status === 500);
  assert.equal((await get({ address, host: HOST, path: "/main" })).status, 200);
  const listeners = await eventually("statuses of listeners", async () => {
    const { status } = await getJson<WithConditions>("-n", NS, "gateway", "broken");
    // Until its first proxy is ready, no listener is programmed.
    const serves = status?.listeners?.some(({ conditions }) =>
      conditions.some(({ type, status }) => type === "Programmed" && status === "True"),
    );
    return serves === true ? status?.listeners : undefined;
  });
  const reasons = Object.fromEntries(
    listeners.map(({ name, conditions }) => [
      name,
      conditions
        .filter(({ type, status }) => type !== "Conflicted" && status === "False")
        .map(({ reason }) => reason)[0],
    ]),
  );
  assert.deepEqual(reasons, {
    http: undefined,
    admin: "PortUnavailable",
    "no-secret": "InvalidCertificateRef",
    "bad-secret": "InvalidCertificateRef",
  });
});

test("a policy is a filter of a rule, whose requests get 500 without it", async () => {
  await apply(`
apiVersion: tracegate.dev/v1alpha1
kind: TracegatePolicy
metadata: {name: teapot, namespace: ${NS}}
spec: {traffic: {directResponse: {status: 418}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: filtered, namespace: ${NS}}
spec:
  parentRefs: [{name: web}]
  hostnames: [${HOST}]
  rules:
    - matches: [{path: {value: /filtered}}]
      filters: [{type: ExtensionRef, extensionRef: {group: tracegate.dev, kind: TracegatePolicy, name: teapot}}]
      backendRefs: [{name: echo, port: 80}]
`);
  const { message } = await condition("tracegatepolicy", "teapot", "Attached", "True");
  assert.match(message, /filter by HTTPRoute e2e-policies\/filtered/);
  const status = async () => (await get({ address, host: HOST, path: "/filtered" })).status;
  await eventually("418", async () => (await status()) === 418);
  await kubectl("-n", NS, "delete", "tracegatepolicy", "teapot");
  await eventually("500", async () => (await status()) === 500);
  assert.equal((await condition("httproute", "filtered", "ResolvedRefs", "False")).reason, "FilterNotFound");
});

test("the API server rejects invalid policies, and says why", async () => {
  const { code, stderr } = await run("kubectl", ["apply", "-f", "-"], {
    input: `
apiVersion: tracegate.dev/v1alpha1
kind: TracegatePolicy
metadata: {name: torn, namespace: ${NS}}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: main}]
  targetSelectors: [{group: gateway.networking.k8s.io, kind: HTTPRoute, matchLabels: {a: b}}]
  traffic: {delay: {duration: 1s}}
`,
  });
  assert.equal(code, 1);
  assert.match(stderr, /only one of targetRefs and targetSelectors/);
});
