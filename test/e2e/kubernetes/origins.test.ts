/** The access log of a proxy names the field of the object that decided. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { OneProxy } from "../../helpers/kube/one-proxy.ts";
import { closedPort, RawPeer } from "../../helpers/raw-peer.ts";

const ROUTES = `
---
kind: HTTPRoute
metadata: { name: all }
spec:
  parentRefs: [{ name: web }]
  rules:
    - matches: [{ path: { value: /missing } }]
      backendRefs: [{ name: empty, port: 80, weight: 0 }, { name: missing, port: 80 }]
    - matches: [{ path: { value: /empty } }]
      backendRefs: [{ name: empty, port: 80 }]
    - matches: [{ path: { value: /outside } }]
      backendRefs:
        - { name: empty, port: 80, weight: 0 }
        - { group: tracegate.dev, kind: TracegateBackend, name: outside }
    - matches: [{ path: { value: /filter } }]
      filters: [{ type: ExtensionRef, extensionRef: { group: example.com, kind: Filter, name: none } }]
      backendRefs: [{ name: empty, port: 80 }]
    - matches: [{ path: { value: /own } }]
      backendRefs:
        - name: empty
          port: 80
          filters: [{ type: ExtensionRef, extensionRef: { group: example.com, kind: Filter, name: none } }]
    - matches: [{ path: { value: /invalid } }, { path: { type: RegularExpression, value: "(" } }]
      backendRefs: [{ name: empty, port: 80 }]
    - matches: [{ path: { value: /nothing } }]
---
kind: Service
metadata: { name: empty }
spec: { ports: [{ port: 80 }] }
`;

test("an error about a backend names its backendRef, also of a Service or TracegateBackend, or the filter that is missing", async () => {
  const backend = `---
kind: TracegateBackend
metadata: { name: outside }
spec: { static: { host: 127.0.0.1, port: ${await closedPort()} } }
`;
  await using proxy = await OneProxy.start(ROUTES + backend);
  for (const [path, place] of [
    ["/missing", "spec.rules[0].backendRefs[1]"],
    ["/empty", "spec.rules[1].backendRefs[0]"],
    ["/outside", "spec.rules[2].backendRefs[1]"],
    ["/filter", "spec.rules[3].filters"],
    ["/own", "spec.rules[4].backendRefs[0].filters"],
    ["/invalid", "spec.rules[5]"],
    ["/nothing", "spec.rules[6]"],
  ] as const) {
    await proxy.get(path);
    const { error } = await proxy.logged(`"http.path":"${path}"`);
    assert.ok(String(error).endsWith(`, at HTTPRoute default/all ${place}`), String(error));
  }
});

test("the error of a connection names its listener, rule or backendRef", async () => {
  await using proxy = await OneProxy.start("");
  const connect = async (): Promise<void> => {
    const client = await RawPeer.connect(proxy.port("bind/5000"));
    await client.closed();
  };
  const route = (rule: string): string => `
kind: TCPRoute
metadata: { name: raw }
spec: { parentRefs: [{ name: web, sectionName: tcp }], rules: [${rule}] }
`;
  await connect();
  await proxy.logged("route not found, at Gateway default/web spec.listeners[1]");
  await proxy.apply(route("{ backendRefs: [] }"));
  await connect();
  await proxy.logged("no valid backends, at TCPRoute default/raw spec.rules[0]");
  await proxy.apply(route("{ backendRefs: [{ name: none, port: 1, weight: 0 }, { name: missing, port: 80 }] }"));
  await connect();
  await proxy.logged(
    "backend does not exist: Service default/missing, at TCPRoute default/raw spec.rules[0].backendRefs[1]",
  );
});

test("a connection that is not allowed names the rule, of the Gateway, of the listener of its port, or of a policy that is invalid", async () => {
  const policy = (name: string, target: string, rules: string): string => `
---
kind: TracegatePolicy
metadata: { name: ${name} }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: Gateway, name: web${target} }]
  frontend: { networkAuthorization: { rules: ${rules} } }
`;
  const none = '[{ allow: "true" }, { require: \'source.address != "127.0.0.1"\' }]';
  const section = ", sectionName: tcp";
  await using proxy = await OneProxy.start(policy("all", "", none) + policy("tcp", section, "['false']"));
  const refused = async (bind: string, error: string): Promise<void> => {
    const client = await RawPeer.connect(proxy.port(bind));
    await client.closed();
    await proxy.logged(JSON.stringify(`authorization failed: ${error}`));
  };
  const at = (name: string): string => `at TracegatePolicy default/${name} spec.frontend.networkAuthorization`;
  const values = '(source.address: "127.0.0.1")';
  await refused("bind/8000", `require rules[1] is not true ${values}, ${at("all")}.rules[1]`);
  await refused("bind/5000", `no allow rule is true, ${at("tcp")}.rules[0]`);
  // Of two policies for one target the first by name applies.
  await proxy.apply(policy("z-lost", section, "['false', 'false']"));
  const origins = (key: string): unknown => bindsOf(proxy.dump()).find((bind) => bind.key === key)?.policyOrigins;
  assert.deepEqual(origins("bind/5000"), [{ networkAuthorization: [`${at("tcp").slice(3)}.rules[0]`] }]);
  await proxy.apply(policy("tcp", section, "[{ deny: '(' }]"));
  await refused("bind/5000", `require rules[0] is not true, ${at("tcp")}`);
  assert.deepEqual(origins("bind/5000"), [{ networkAuthorization: [at("tcp").slice(3)] }]);
  assert.deepEqual(origins("bind/8000"), [
    { networkAuthorization: [0, 1].map((rule) => `${at("all").slice(3)}.rules[${rule}]`) },
  ]);
});

/** The binds of a dump. */
function bindsOf(dump: unknown): readonly { readonly key: string; readonly policyOrigins: unknown }[] {
  return (dump as { readonly binds: ReturnType<typeof bindsOf> }).binds;
}

test("a service that denies connections is that of its policy", async () => {
  const service = await closedPort();
  await using proxy = await OneProxy.start(`
---
kind: TracegatePolicy
metadata: { name: asks }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: Gateway, name: web }]
  frontend:
    networkExtAuthz: { host: "127.0.0.1:${service}", protocol: { http: {} } }
`);
  const client = await RawPeer.connect(proxy.port());
  await client.closed();
  const { error } = await proxy.logged("external authorization failed");
  assert.ok(String(error).endsWith(", at TracegatePolicy default/asks spec.frontend.networkExtAuthz"), String(error));
});

test("a request that is over a limit of its port names the policy with the limits", async () => {
  await using proxy = await OneProxy.start(`
---
kind: TracegatePolicy
metadata: { name: limits }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: Gateway, name: web }]
  frontend: { http: { maxRequestBodySize: 5 } }
`);
  await proxy.send("POST", "/", {}, Buffer.alloc(6));
  const { error } = await proxy.logged("rejected");
  assert.ok(String(error).endsWith(", at TracegatePolicy default/limits spec.frontend.http"), String(error));
});
