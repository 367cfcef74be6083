import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAllDocuments } from "yaml";
import { Findings } from "../findings.ts";
import { convertNginx } from "../nginx/convert.ts";
import { writeGatewayApi } from "./write.ts";

interface Written {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: Readonly<Record<string, unknown>>;
}

/** The objects for a server of nginx, by kind, and what is found. */
function objects(text: string) {
  const findings = new Findings();
  const converted = convertNginx("nginx.conf", text, undefined);
  const written = parseAllDocuments(writeGatewayApi(converted, findings)).map((each) => each.toJS() as Written);
  return {
    of: (kind: string) => written.filter((each) => each.kind === kind),
    rules: written.filter(({ kind }) => kind === "HTTPRoute").flatMap(({ spec }) => spec.rules as readonly Rule[]),
    found: findings.sorted().map(({ severity, message, remedy }) => `${severity}: ${message}; ${remedy}`),
  };
}

interface Rule {
  readonly filters?: readonly Readonly<Record<string, unknown>>[];
  readonly backendRefs?: readonly Readonly<Record<string, unknown>>[];
}

function proxied(to: string, more = ""): string {
  return `${more} server { listen 80; server_name shop.example; location / { proxy_pass http://${to}; } }`;
}

test("hosts become Services where their names say so, and TracegateBackends otherwise", () => {
  const refs = (to: string) => objects(proxied(to)).rules[0]?.backendRefs;
  assert.deepEqual(refs("app:8080"), [{ name: "app", port: 8080 }]);
  assert.deepEqual(refs("app.shop.svc.cluster.local"), [{ name: "app", namespace: "shop", port: 80 }]);
  const backend = (name: string) => [{ group: "tracegate.dev", kind: "TracegateBackend", name }];
  assert.deepEqual(refs("app.example.com"), backend("app-example-com-80"));
  assert.deepEqual(refs("10.0.0.1:81"), backend("10-0-0-1-81"));
  assert.deepEqual(objects(proxied("[2001:db8::1]:81")).of("TracegateBackend")[0]?.spec, {
    static: { host: "2001:db8::1", port: 81 },
  });
  assert.match(objects(proxied("127.0.0.1:81")).found.join(), /^error: 127\.0\.0\.1:81 is the pod of the proxy/);
  assert.match(
    objects(proxied("app.shop.svc")).found.join(),
    /^warning: Service shop\/app is in a namespace of its own/,
  );
});

test("hosts whose names look alike as names of objects have listeners of their own", () => {
  const hosts = ["a-b.example", "a.b.example", `${"x".repeat(63)}.one.example`, `${"x".repeat(63)}.two.example`];
  const { of } = objects(
    hosts
      .map((host, i) => `server { listen 80; server_name ${host}; location / { proxy_pass http://app${i}; } }`)
      .join(""),
  );
  const listeners = of("Gateway")[0]?.spec.listeners as readonly { name: string; hostname: string }[];
  const served = of("HTTPRoute").flatMap(({ spec }) => {
    const { parentRefs, rules } = spec as { parentRefs: { sectionName: string }[]; rules: Rule[] };
    return parentRefs.map(({ sectionName }) => [
      listeners.find(({ name }) => name === sectionName)?.hostname,
      rules[0]?.backendRefs?.[0]?.name,
    ]);
  });
  for (const [i, host] of hosts.entries())
    assert.deepEqual(
      served.filter(([name]) => name === host),
      [[host, `app${i}`]],
    );
});

test("a pool of addresses becomes a Service, one of names a split", () => {
  const pool = (...servers: readonly string[]) =>
    objects(proxied("pool", `upstream pool { ${servers.map((each) => `server ${each};`).join(" ")} }`));
  const addresses = pool("10.0.0.1:81", "10.0.0.2:81", "10.0.0.3:82", "10.0.0.4:81 backup");
  const own = pool("127.0.0.1:81", "10.0.0.2:81");
  assert.deepEqual(
    own.of("EndpointSlice").map((each) => (each as unknown as { endpoints: unknown }).endpoints),
    [[{ addresses: ["10.0.0.2"] }]],
  );
  assert.match(own.found.join(), /error: 127\.0\.0\.1:81 is the pod of the proxy/);
  assert.deepEqual(addresses.rules[0]?.backendRefs, [{ name: "pool", port: 81 }]);
  assert.deepEqual(
    addresses.of("EndpointSlice").map((each) => (each as unknown as { endpoints: unknown }).endpoints),
    [[{ addresses: ["10.0.0.1"] }, { addresses: ["10.0.0.2"] }], [{ addresses: ["10.0.0.3"] }]],
  );
  assert.match(addresses.found.join(), /weight and backup are left out/);
  const names = pool("a:81 weight=2", "b:81");
  assert.deepEqual(names.rules[0]?.backendRefs, [
    { name: "a", port: 81, weight: 2 },
    { name: "b", port: 81 },
  ]);
  assert.match(names.found.join(), /pool pool becomes a split/);
});

test("files become Secrets and ConfigMaps, with the command that makes them", () => {
  const { of, found } = objects(`server { listen 443 ssl; server_name shop.example; ssl_certificate /tls/c.pem;
ssl_certificate_key /tls/k.pem; ssl_client_certificate /tls/ca.pem; ssl_verify_client on; ssl_protocols TLSv1.3;
location / { auth_basic x; auth_basic_user_file /etc/users.txt; proxy_pass https://app:443; proxy_ssl_verify on;
proxy_ssl_trusted_certificate /tls/backends.pem; } }`);
  assert.deepEqual(found, [
    "note: /tls/c.pem becomes Secret shop-example-tls; kubectl create secret tls shop-example-tls --cert=/tls/c.pem --key=/tls/k.pem",
    "note: /tls/ca.pem becomes ConfigMap ca; kubectl create configmap ca --from-file=ca.crt=/tls/ca.pem",
    "note: /etc/users.txt becomes Secret users; kubectl create secret generic users --from-file=users.txt=/etc/users.txt",
    "note: /tls/backends.pem becomes ConfigMap backends; kubectl create configmap backends --from-file=ca.crt=/tls/backends.pem",
    "note: app:443 is taken for a Service of the namespace of the route; undefined",
  ]);
  assert.deepEqual(of("Gateway")[0]?.spec.tls, {
    frontend: {
      default: {},
      perPort: [
        { port: 443, tls: { validation: { caCertificateRefs: [{ group: "", kind: "ConfigMap", name: "ca" }] } } },
      ],
    },
  });
  assert.deepEqual(
    of("TracegatePolicy").find(({ metadata }) => metadata.name === "https-shop-example")?.spec.frontend,
    {
      tls: { minVersion: "TLS_V1_3" },
    },
  );
});

test("a host whose client certificates the port does not require of all is left out, not opened", () => {
  const server = (name: string, more: string) =>
    `server { listen 443 ssl; server_name ${name}; ssl_certificate /c; ssl_certificate_key /k; ${more} location / { return 204; } }`;
  const { of, found } = objects(
    server("open.example", "") + server("closed.example", "ssl_verify_client on; ssl_client_certificate /ca;"),
  );
  const listeners = of("Gateway")[0]?.spec.listeners as readonly { readonly hostname?: string }[];
  assert.deepEqual(
    listeners.map(({ hostname }) => hostname),
    ["open.example", undefined],
  );
  assert.deepEqual(of("HTTPRoute").length, 1);
  assert.match(found.join(), /error: closed\.example is left out: client certificates/);
});

test("limits of the Gateway API: rules of a route, matches of a rule", () => {
  const locations = Array.from({ length: 40 }, (_, i) => `location = /${i} { return 204; }`).join(" ");
  const sizes = objects(`server { listen 80; server_name shop.example; ${locations} }`)
    .of("HTTPRoute")
    .map(({ spec }) => (spec.rules as readonly unknown[]).length);
  assert.deepEqual(sizes, [16, 16, 8]);
});

test("what a filter cannot say is in a TracegatePolicy, which is a filter of the same rule", () => {
  const { rules, of } = objects(
    `server { listen 80; server_name shop.example; location / { proxy_pass http://10.0.0.1; add_header X ""; return 301 https://$host:8443/; } }`,
  );
  assert.deepEqual(
    rules[0]?.filters?.map(({ type }) => type),
    ["ExtensionRef"],
  );
  assert.deepEqual(Object.keys(of("TracegatePolicy")[0]?.spec.traffic as object).sort(), [
    "directResponse",
    "maxRequestBodySize",
    "responseHeaderModifier",
  ]);
});
