/** Ingresses with traffic. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { Backends, echo, OneProxy, service } from "../../helpers/kube/one-proxy.ts";

const backends = new Backends();
after(() => backends[Symbol.dispose]());

let one: number;
let two: number;
before(async () => {
  one = await backends.listen(createServer(echo("one")));
  two = await backends.listen(createServer(echo("two")));
});

const CLASS = `
---
kind: IngressClass
metadata: { name: tracegate, namespace: "" }
spec:
  controller: tracegate.dev/gateway-controller
  parameters: { apiGroup: gateway.networking.k8s.io, kind: Gateway, scope: Namespace, namespace: default, name: web }
`;

function ingress(name: string, spec: string, metadata = ""): string {
  return `---\nkind: Ingress\nmetadata: { name: ${name}, ${metadata} }\nspec: { ingressClassName: tracegate, ${spec} }\n`;
}

const backend = (name: string) => `backend: { service: { name: ${name}, port: { number: 80 } } }`;
const path = (type: string, value: string, name: string) => `{ pathType: ${type}, path: ${value}, ${backend(name)} }`;
const rule = (host: string, ...paths: readonly string[]) =>
  `{ ${host === "" ? "" : `host: "${host}", `}http: { paths: [${paths.join(", ")}] } }`;

function start(objects: string): Promise<OneProxy> {
  return OneProxy.start(CLASS + service("one", one) + service("two", two) + objects);
}

test("the longest path goes first, Exact before Prefix, and prefixes end at a slash", async () => {
  const paths = [
    path("Prefix", "/", "one"),
    path("Prefix", "/a", "two"),
    path("Exact", "/a", "one"),
    path("ImplementationSpecific", "/s/", "two"),
  ];
  await using proxy = await start(ingress("paths", `rules: [${rule("a.test", ...paths)}]`));
  for (const [path, name] of [
    ["/a", "one"],
    ["/a/", "two"],
    ["/a/b", "two"],
    ["/ab", "one"],
    ["/s", "two"],
    ["/", "one"],
  ] as const)
    assert.equal((await proxy.get(path)).body, `${name} ${path}`);
});

test("a wildcard stands for one label, and an exact host goes first", async () => {
  const rules = [rule("*.wild.test", path("Prefix", "/", "one")), rule("a.wild.test", path("Prefix", "/a", "two"))];
  await using proxy = await start(ingress("hosts", `rules: [${rules.join(", ")}]`));
  const get = async (host: string, path: string) => (await proxy.get(path, { host })).status;
  assert.equal(await get("b.wild.test", "/"), 200);
  assert.equal(await get("B.wild.test:8000", "/"), 200);
  assert.equal((await proxy.get("/a", { host: "a.wild.test" })).body, "two /a");
  assert.equal(await get("c.b.wild.test", "/"), 404);
  assert.equal(await get("wild.test", "/"), 404);
});

test("the default backend gets what no other rule matches", async () => {
  const rules = rule("a.test", path("Prefix", "/a", "one"));
  await using proxy = await start(
    ingress("all", `defaultBackend: { service: { name: two, port: { number: 80 } } }, rules: [${rules}]`),
  );
  assert.equal((await proxy.get("/a")).body, "one /a");
  assert.equal((await proxy.get("/b")).body, "two /b");
  assert.equal((await proxy.get("/a", { host: "b.test" })).body, "two /a");
});

test("an Ingress with annotations of another controller gets no traffic through, also not by a wider rule", async () => {
  const guarded = `annotations: { nginx.ingress.kubernetes.io/auth-url: "http://auth.test" }`;
  const wide = ingress("wide", `rules: [${rule("a.test", path("Prefix", "/", "one"))}]`);
  const narrow = (metadata: string) =>
    ingress("narrow", `rules: [${rule("a.test", path("Prefix", "/admin", "two"))}]`, metadata);
  await using proxy = await start(wide + narrow(guarded));
  assert.equal((await proxy.get("/")).status, 200);
  assert.equal((await proxy.get("/admin")).status, 500);
  await proxy.apply(narrow(""));
  assert.equal((await proxy.get("/admin")).body, "two /admin");
});

test("a host belongs to the namespace that had it first", async () => {
  const theirs = ingress(
    "theirs",
    `rules: [${rule("a.test", path("Prefix", "/", "one"))}]`,
    "creationTimestamp: 2026-01-01T00:00:00Z",
  );
  const thief = ingress(
    "thief",
    `rules: [${rule("a.test", path("Exact", "/login", "one"))}]`,
    "namespace: others, creationTimestamp: 2026-01-02T00:00:00Z",
  );
  const stolen = service("one", two).replaceAll(/name: one/g, "namespace: others, name: one");
  const all = `
---
kind: Gateway
metadata: { name: web }
spec:
  gatewayClassName: tracegate
  listeners: [{ name: http, port: 8000, protocol: HTTP, allowedRoutes: { namespaces: { from: All } } }]
`;
  await using proxy = await start(all + theirs + thief + stolen);
  assert.equal((await proxy.get("/login")).body, "one /login");
});
