import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parseAllDocuments, stringify } from "yaml";
import { invoke } from "../../fixtures/invoke.ts";
import { SyntaxProblem } from "../findings.ts";
import { convertIngress } from "./convert.ts";

const PREFIX = "nginx.ingress.kubernetes.io/";

/** An Ingress with the paths `/` and `/admin` of a host. */
function ingress(annotations: Readonly<Record<string, string>>, fields: object = {}): object {
  const path = (path: string) => ({
    path,
    pathType: "Prefix",
    backend: { service: { name: "app", port: { number: 80 } } },
  });
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { name: "app", namespace: "shop", annotations },
    spec: { rules: [{ host: "shop.example.com", http: { paths: [path("/"), path("/admin")] } }], ...fields },
  };
}

function converted(...objects: readonly object[]) {
  return convertIngress("in.yaml", objects.map((each) => stringify(each)).join("---\n"));
}

function withAnnotations(annotations: Readonly<Record<string, string>>) {
  const named = Object.entries(annotations).map(([name, value]) => [PREFIX + name, value]);
  return converted(ingress(Object.fromEntries(named)));
}

test("a further name of an Ingress is no way around another one that has it", () => {
  const { routes } = converted(
    ingress({ [`${PREFIX}server-alias`]: "b.example.com,c.example.com" }),
    ingress(
      { [`${PREFIX}auth-tls-secret`]: "x" },
      { rules: [{ host: "b.example.com" }], defaultBackend: { service: { name: "b", port: { number: 80 } } } },
    ),
    ingress(
      { [`${PREFIX}server-alias`]: "c.example.com" },
      { rules: [{ host: "d.example.com" }], defaultBackend: { service: { name: "d", port: { number: 80 } } } },
    ),
  );
  assert.deepEqual(
    routes.map(({ hostnames }) => hostnames),
    [
      ["shop.example.com", "c.example.com"],
      ["shop.example.com", "c.example.com"],
      ["b.example.com"],
      ["d.example.com"],
    ],
  );
});

test("header fields that a snippet keeps from clients are not left to them", () => {
  const { routes } = withAnnotations({
    "configuration-snippet":
      'proxy_set_header X-A $role; proxy_set_header X-B ""; more_clear_input_headers X-C; more_set_input_headers "X-D: d";',
  });
  assert.deepEqual(routes[0]?.policies.requestHeaderModifier, { set: { "X-D": "d" }, remove: ["X-A", "X-B", "X-C"] });
  assert.equal(
    withAnnotations({ "configuration-snippet": "more_clear_input_headers X-*;" }).routes[0]?.policies.directResponse !==
      undefined,
    true,
  );
});

test("what may restrict requests and is not converted closes every path, and nothing else does", () => {
  const closing: readonly Readonly<Record<string, string>>[] = [
    { "auth-tls-secret": "shop/ca" },
    { "enable-modsecurity": "true" },
    { "unheard-of": "1" },
    { "auth-type": "digest", "auth-secret": "users" },
    { "auth-type": "basic" },
    { "auth-type": "basic", "auth-secret": "other/users" },
    { "auth-type": "basic", "auth-secret": "users", "auth-secret-type": "auth-map" },
    { "auth-url": "http://$host/auth" },
    { "auth-url": "http://auth.shop.svc/$unheard_of" },
    { "whitelist-source-range": "10.0.0.0/8,office" },
    { "denylist-source-range": "," },
    { "configuration-snippet": "deny all;" },
    { "configuration-snippet": "access_by_lua_block { x }" },
    { "configuration-snippet": "proxy_pass http://other;" },
    { "configuration-snippet": "add_header X" },
    { "server-snippet": "location /admin { return 403; }" },
    { "backend-protocol": "FCGI" },
  ];
  for (const each of closing) {
    const { routes, findings } = withAnnotations(each);
    const shown = JSON.stringify(each);
    for (const { policies, backends } of routes) {
      assert.equal((policies.directResponse as { status?: number } | undefined)?.status, 501, shown);
      assert.deepEqual(backends, [], shown);
    }
    assert.ok(
      findings.some(({ severity }) => severity === "error"),
      shown,
    );
  }
  const open: readonly Readonly<Record<string, string>>[] = [
    { "proxy-buffering": "off" },
    { "limit-connections": "3" },
    { "configuration-snippet": 'more_set_headers "A: b"; proxy_cookie_path / /; sub_filter a b;' },
  ];
  for (const each of open)
    assert.deepEqual(
      withAnnotations(each).routes.flatMap(({ policies, backends }) => [policies.directResponse, backends.length]),
      [undefined, 1, undefined, 1],
    );
});

test("satisfy: any is an address or a password, and both where it cannot be said", () => {
  const password = { "auth-type": "basic", "auth-secret": "users", satisfy: "any" };
  const kinds = (annotations: Readonly<Record<string, string>>) =>
    Object.keys(withAnnotations(annotations).routes[0]?.policies ?? {}).sort();
  assert.deepEqual(kinds({ ...password, "whitelist-source-range": "10.0.0.0/8" }), ["satisfy"]);
  assert.deepEqual(kinds({ ...password, "denylist-source-range": "10.0.0.0/8" }), ["basicAuth", "ipAccess"]);
  assert.deepEqual(kinds(password), ["basicAuth"]);
});

test("annotations of others that are no configuration of a controller change nothing", () => {
  const { routes, findings } = converted(
    ingress({ "example.com/owner": "team", "kubernetes.io/ingress.class": "nginx" }),
  );
  assert.deepEqual([routes.length, findings], [2, []]);
});

test("a host with expressions has them on every path; where requests are kept out, they match as widely as before", () => {
  const pathsOf = (annotations: Readonly<Record<string, string>>) =>
    withAnnotations(annotations).routes.map(({ matches: [match] }) => match?.path);
  assert.deepEqual(pathsOf({ "use-regex": "true" }), [{ pathPrefix: "/admin" }, { pathPrefix: "/" }]);
  assert.deepEqual(pathsOf({ "use-regex": "true", "whitelist-source-range": "10.0.0.0/8" }), [
    { regex: "(?i)/admin.*" },
    { pathPrefix: "/" },
  ]);
});

test("a rewrite leaves groups empty that the path does not have, and a path that is its own target alone", () => {
  const rewrites = withAnnotations({ "rewrite-target": "/$2" }).routes.map(({ policies }) => policies);
  const whole = { urlRewrite: { path: { full: "/" } } };
  assert.deepEqual(rewrites, [whole, whole]);
  const own = withAnnotations({ "rewrite-target": "/" }).routes.map(({ policies }) => policies);
  assert.deepEqual(own, [whole, {}]);
});

test("HTTP is redirected where a host has a certificate, unless the Ingress says otherwise", () => {
  const tls = { tls: [{ hosts: ["*.example.com"], secretName: "tls" }] };
  const listeners = (annotations: Readonly<Record<string, string>>, fields: object) =>
    converted(ingress(annotations, fields)).routes.map(({ listeners, policies }) => [
      ...listeners,
      ...Object.keys(policies),
    ]);
  const https = "https/wildcard-example-com";
  assert.deepEqual(listeners({}, tls), [[https], [https], ["http/http", "requestRedirect"]]);
  const both = ["http/http", https];
  assert.deepEqual(listeners({ [`${PREFIX}ssl-redirect`]: "false" }, tls), [both, both]);
  assert.deepEqual(listeners({}, {}), [["http/http"], ["http/http"]]);
  assert.deepEqual(
    converted(ingress({ [`${PREFIX}force-ssl-redirect`]: "true" })).findings.map(
      ({ line, message }) => `${line} ${message}`,
    ),
    ["7 shop.example.com has no certificate here, so requests are not redirected"],
  );
});

test("a rule for any host redirects only the hosts that have a certificate", () => {
  const rules = [
    { http: { paths: [{ pathType: "Prefix", backend: { service: { name: "app", port: { number: 80 } } } }] } },
  ];
  const tls = [{ hosts: ["a.example.com"], secretName: "tls" }];
  const plain = ingress({ [`${PREFIX}ssl-redirect`]: "false" });
  const { routes } = converted(ingress({}, { rules, tls }), {
    ...plain,
    spec: {
      rules: [
        {
          http: {
            paths: [{ path: "/b", pathType: "Prefix", backend: { service: { name: "app", port: { number: 80 } } } }],
          },
        },
      ],
    },
  });
  const both = ["http/http", "https/a-example-com"];
  assert.deepEqual(
    routes.map(({ hostnames, listeners }) => [hostnames, listeners]),
    [
      [undefined, both],
      [undefined, both],
      [["a.example.com"], ["http/http"]],
    ],
  );
});

test("what is no Ingress says where, and what to do", () => {
  const problem = (text: string): string => {
    try {
      return convertIngress("in.yaml", text)
        .findings.map(({ line, column, message, remedy }) => `${line}:${column} ${message}; ${remedy}`)
        .join();
    } catch (error) {
      assert.ok(error instanceof SyntaxProblem);
      return `${error.place.line}:${error.place.column} ${error.message}`;
    }
  };
  const head = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: { name: a }\n";
  assert.match(problem("a: ["), /^1:\d /);
  assert.equal(
    problem(
      `${head}spec:\n  rules:\n    - http:\n        paths:\n          - path: admin\n            pathType: Prefix\n`,
    ),
    "8:13 spec.rules.0.http.paths.0.path: must begin with /",
  );
  assert.equal(
    problem("kind: Ingress\nmetadata: { name: a, annotations: { x: true } }\napiVersion: networking.k8s.io/v1\n"),
    "2:37 metadata.annotations.x: is not a text; put it into quotes",
  );
  assert.match(
    problem("kind: Ingress\napiVersion: extensions/v1beta1\n"),
    /2:1 an Ingress of extensions\/v1beta1 is not read; read it/,
  );
  assert.match(problem(""), /^1:1 there is no Ingress to convert; pass what/);
  assert.match(problem("kind: Role\napiVersion: v1\n"), /^1:1 Role is not read.*there is no Ingress/);
});

test("the command writes objects, or a file if asked", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tracegate-convert-"));
  try {
    const file = join(folder, "in.yaml");
    writeFileSync(file, stringify(ingress({})));
    const objects = await invoke(["convert", "ingress", file]);
    const kinds = parseAllDocuments(objects.stdout).map((each) => (each.toJS() as { kind: string }).kind);
    assert.deepEqual([objects.code, kinds], [0, ["Gateway", "HTTPRoute"]]);
    const written = await invoke(["convert", "ingress", file, "--to", "file"]);
    assert.match(written.stdout, /^# tracegate config\n/);
    assert.match(
      (await invoke(["convert", "ingress", file, "--to", "caddy"])).stderr,
      /"caddy" is not known; use file or gateway-api/,
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});
