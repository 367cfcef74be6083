import assert from "node:assert/strict";
import { test } from "node:test";
import { stringify } from "yaml";
import { reportOf } from "../config/check.ts";
import { loadConfig } from "../config/load.ts";
import { fullText } from "./problems/diagnostics.ts";

test("check warns about deny rules that a request passes by omitting the value that they negate", () => {
  const authorization = {
    rules: [
      { deny: 'request.headers["x-role"] != "admin"' },
      { deny: 'request.headers[?"x-role"].orValue("") != "admin"' },
      { require: 'request.headers["x-role"] != "guest"' },
    ],
  };
  const config = {
    frontendPolicies: { networkAuthorization: { rules: [{ deny: '!source.subjectCn.endsWith(".example")' }] } },
    binds: [
      { port: 2, listeners: [{ routes: [{ policies: { authorization }, backends: [{ host: "127.0.0.1:1" }] }] }] },
    ],
  };
  const { ok, diagnostics } = reportOf(loadConfig({ kind: "text", text: stringify(config, { lineWidth: 0 }) }, {}));
  assert.equal(ok, true);
  const warnings = diagnostics.filter(({ severity }) => severity === "warning");
  assert.deepEqual(
    warnings.map((each) => [each.path, fullText(each)]),
    [
      [
        "frontendPolicies.networkAuthorization.rules[0].deny",
        'denies nothing where source.subjectCn is absent, so a request without it passes; to handle absence, write source[?"subjectCn"].orValue("")',
      ],
      [
        "binds[0].listeners[0].routes[0].policies.authorization.rules[0].deny",
        'denies nothing where request.headers["x-role"] is absent, so a request without it passes; to handle absence, write request.headers[?"x-role"].orValue("")',
      ],
    ],
  );
});

test("check warns about alternatives that make no choice, and about those that another policy leaves no credential", () => {
  const keys = [{ key: "k" }];
  const header = { location: { header: { name: "x-api-key" } } };
  const jwtAuth = { issuer: "i", jwks: { url: "https://i.example/jwks" } };
  const warned = (policies: object): [string | undefined, string][] => {
    const routes = [{ policies, backends: [{ host: "127.0.0.1:1" }] }];
    const text = stringify({ gateways: { default: { port: 2 } }, routes }, { aliasDuplicateObjects: false });
    const { ok, diagnostics } = reportOf(loadConfig({ kind: "text", text }, {}));
    assert.equal(ok, true);
    return diagnostics
      .filter(({ severity, path }) => severity === "warning" && path.startsWith("routes"))
      .map(({ lint, path }) => [lint, path]);
  };
  const at = "routes[0].policies.satisfy";
  assert.deepEqual(warned({ satisfy: { any: [{ apiKey: { keys } }] } }), [["single-alternative", at]]);
  const any = [{ apiKey: { keys, ...header } }, { jwtAuth }];
  assert.deepEqual(warned({ satisfy: { any } }), []);
  // It does not have to keep anybody out.
  assert.deepEqual(warned({ jwtAuth, satisfy: { any: [any[0], { ipAccess: { allow: ["10.0.0.0/8"] } }] } }), []);
  assert.deepEqual(warned({ apiKey: { mode: "strict", keys }, satisfy: { any } }), []);
  assert.deepEqual(warned({ jwtAuth, satisfy: { any } }), [["taken-credential", `${at}.any[1].jwtAuth`]]);
});

test("check warns about logins whose paths other routes get, pages after a logout that need a login, and plain HTTP", () => {
  const oidc = {
    issuer: "https://id.example",
    authorizationEndpoint: "https://id.example/auth",
    tokenEndpoint: "https://id.example/token",
    jwks: '{"keys":[]}',
    clientId: "c",
    clientSecret: "s",
    redirectURI: "https://shop.example/callback",
    logout: { path: "/logout", redirectURI: "https://shop.example/bye" },
  };
  const backends = [{ host: "127.0.0.1:1" }];
  const at = (path: string, policies: object) => ({
    name: `at.${path.slice(1)}.x`,
    matches: [{ path: { pathPrefix: path } }],
    policies,
    backends,
  });
  const warned = (
    routes: readonly object[],
    listener = {},
    changes = {},
    routeGroups: readonly object[] = [],
  ): [string | undefined, string][] => {
    const policies = { oidc: { ...oidc, ...changes } };
    const all = routes.map((route) => ("protected" in route ? at(String(route.protected), policies) : route));
    const text = stringify(
      { routeGroups, binds: [{ port: 2, listeners: [{ ...listener, routes: all }] }] },
      { aliasDuplicateObjects: false },
    );
    const { ok, diagnostics } = reportOf(loadConfig({ kind: "text", text }, { OIDC_COOKIE_SECRET: "ab".repeat(32) }));
    assert.ok(ok, JSON.stringify(diagnostics));
    return diagnostics.filter(({ severity }) => severity === "warning").map(({ lint, message }) => [lint, message]);
  };
  const open = at("/", {});
  assert.deepEqual(warned([{ protected: "/app" }, open]), [
    ["unserved-login-path", "its login needs /callback, which goes to at..x"],
    ["unserved-login-path", "its login needs /logout, which goes to at..x"],
  ]);
  const page = "after a logout the browser is sent to /bye, which";
  assert.deepEqual(warned([{ protected: "/" }]), [
    ["protected-logout-page", `${page} this policy protects by a login`],
  ]);
  assert.deepEqual(warned([{ protected: "/" }, at("/bye", {})]), []);
  const any = [{ oidc }, { ipAccess: { allow: ["10.0.0.0/8"] } }];
  assert.deepEqual(warned([at("/", { satisfy: { any } })]), [
    ["protected-logout-page", `${page} this policy protects by a login`],
  ]);
  assert.deepEqual(warned([open], { policies: { oidc } }), [
    ["protected-logout-page", `${page} this policy protects by a login`],
  ]);
  // What the listener requires, every route requires.
  assert.deepEqual(warned([{ protected: "/app" }, open], { policies: { oidc } }), [
    ["protected-logout-page", `${page} this policy protects by a login`],
  ]);
  const group = [{ name: "g", routes: [at("/", { oidc: { ...oidc, logout: undefined } })] }];
  const delegating = { ...at("/", {}), backends: [{ routeGroup: "g" }] };
  assert.deepEqual(warned([{ protected: "/app" }, delegating], {}, { logout: undefined }, group), []);
  // Another site may have the page, and another listener the host.
  const elsewhere = { logout: { path: "/logout", redirectURI: "https://www.example/bye" } };
  assert.deepEqual(warned([{ protected: "/" }], { hostname: "shop.example" }, elsewhere), []);
  assert.deepEqual(warned([open], { policies: { oidc: { ...oidc, ...elsewhere } } }), []);
  assert.deepEqual(warned([{ protected: "/app" }, open], { hostname: "other.example" }), []);
  // Another login cannot complete this one.
  const another = at("/", { oidc: { ...oidc, clientId: "another", logout: undefined } });
  assert.deepEqual(warned([{ protected: "/app" }, another], {}, { logout: undefined }), [
    ["unserved-login-path", "its login needs /callback, which goes to at..x"],
  ]);
  const plain = { redirectURI: "http://shop.example/callback", logout: undefined };
  assert.deepEqual(warned([{ protected: "/" }], {}, plain), [
    [
      "unencrypted-login",
      "sends the cookie of the session unencrypted, because redirectURI is http://shop.example/callback",
    ],
  ]);
  for (const host of ["localhost:3000", "127.0.0.1", "[::1]:3000"])
    assert.deepEqual(warned([{ protected: "/" }], {}, { ...plain, redirectURI: `http://${host}/callback` }), []);
  for (const host of ["localhost.example", "127.0.0.1.example", "mylocalhost"])
    assert.equal(warned([{ protected: "/" }], {}, { ...plain, redirectURI: `http://${host}/callback` }).length, 1);
});

test("check takes the locality of a neighbour on the node for that of the gateway", () => {
  const of = (NODE_NAME: string) => {
    const service = { name: "web", namespace: "shop", hostname: "web.test", ports: { 80: 8080 } };
    const services = [{ ...service, loadBalancer: { mode: "Failover", routingPreferences: ["zone"] } }];
    const workload = { uid: "one", name: "one", namespace: "shop", workloadIps: ["10.0.0.1"] };
    const workloads = [{ ...workload, node: "n1", locality: { region: "eu", zone: "eu-1" } }];
    const { diagnostics } = reportOf(
      loadConfig({ kind: "text", text: stringify({ services, workloads }) }, { NODE_NAME }),
    );
    return diagnostics.map(({ lint }) => lint).includes("unknown-locality");
  };
  assert.deepEqual([of("n1"), of("n2")], [false, true]);
});

test("check warns about trusted proxies that may not connect, unless PROXY headers name the clients", () => {
  const codes = (more: object) => {
    const ipAccess = { allow: ["10.0.0.0/8"] };
    const http = { forwarded: { trustedProxies: ["192.0.2.1"] } };
    const frontendPolicies = { ipAccess, http, ...more };
    const { diagnostics } = reportOf(loadConfig({ kind: "text", text: stringify({ frontendPolicies }) }, {}));
    return diagnostics.map(({ lint }) => lint);
  };
  assert.ok(codes({}).includes("excluded-proxy"));
  const proxyProtocol = { from: ["10.0.0.1"] };
  assert.ok(!codes({ proxyProtocol }).includes("excluded-proxy"));
});

test("check warns about limits of bodies that the limit of all requests makes useless", () => {
  const warned = (all: string, own: string | number): string[] => {
    const routes = [{ policies: { maxRequestBodySize: own }, backends: [{ host: "127.0.0.1:1" }] }];
    const frontendPolicies = { http: { maxRequestBodySize: all } };
    const text = stringify({ frontendPolicies, gateways: { default: { port: 2 } }, routes });
    const { diagnostics } = reportOf(loadConfig({ kind: "text", text }, {}));
    return diagnostics.filter(({ lint }) => lint === "useless-body-limit").map(({ path }) => path);
  };
  const found = ["routes[0].policies.maxRequestBodySize"];
  assert.deepEqual(warned("1MB", "10MB"), found);
  assert.deepEqual(warned("1MB", 0), found);
  assert.deepEqual(warned("10MB", "10MB"), []);
  assert.deepEqual(warned("0", "10MB"), []);
});

test("check warns about conditions that are always true or always false, and about no other", () => {
  const warned = (rule: object): string[] => {
    const routes = [{ policies: { authorization: { rules: [rule] } }, backends: [{ host: "127.0.0.1:1" }] }];
    const text = stringify({ binds: [{ port: 2, listeners: [{ routes }] }] }, { lineWidth: 0 });
    const { diagnostics } = reportOf(loadConfig({ kind: "text", text }, {}));
    return diagnostics.filter(({ lint }) => lint === "constant-condition").map(({ message }) => message);
  };
  const method = "request.method";
  for (const [rule, message] of [
    [{ allow: `${method} == "GET" && ${method} == "PUT"` }, "is always false, so it allows none"],
    [{ deny: `${method} != "GET" || ${method} != "PUT"` }, "is always true, so it denies all requests"],
    [{ require: `${method} == "GET" || 1 < 2` }, "is always true, so it requires nothing"],
    [{ require: '!("a" in ["a", "b"])' }, "is always false, so it denies all requests"],
    [{ allow: `"a" == "b" ? ${method} == "GET" : false` }, "is always false, so it allows none"],
  ] as const)
    assert.deepEqual(warned(rule), [message], JSON.stringify(rule));
  for (const expression of [
    "true",
    `${method} == "GET" || ${method} == "PUT"`,
    `${method} != "GET" && ${method} != "PUT"`,
    `${method} == "GET" && ${method} == "GET"`,
    'request.headers["a"] == "1" && request.headers["b"] == "2"',
    "random() < 0.5",
    "has(jwt.sub)",
    '["a"].exists(each, each == request.method)',
    'string(uuid()) == "a" && string(uuid()) == "b"',
  ])
    assert.deepEqual(warned({ allow: expression }), [], expression);
});

test("check warns about a route whose hostnames cannot meet the listener's, and about no other", () => {
  const warned = (listener: string, route: string): boolean => {
    const routes = [{ hostnames: [route], backends: [{ host: "127.0.0.1:1" }] }];
    const text = stringify({ binds: [{ port: 2, listeners: [{ hostname: listener, routes }] }] });
    return reportOf(loadConfig({ kind: "text", text }, {})).diagnostics.some(({ message }) =>
      message.startsWith("never matches: "),
    );
  };
  for (const [listener, route] of [
    ["*", "a.example"],
    ["a.example", "a.example"],
    ["*.example", "a.example"],
    ["*.example", "*.a.example"],
    ["a.example", "*.example"],
    ["*.a.example", "*.example"],
  ] as const)
    assert.equal(warned(listener, route), false, `${listener} and ${route}`);
  for (const [listener, route] of [
    ["a.example", "b.example"],
    ["*.example", "a.test"],
    ["*.a.example", "*.b.example"],
    ["*.a.example", "b.example"],
  ] as const)
    assert.equal(warned(listener, route), true, `${listener} and ${route}`);
});

test("check warns about keys of an authorization cache without effect, and about credentials that one ignores", () => {
  const warned = (extAuthz: object): string[] => {
    const routes = [
      { policies: { extAuthz: { host: "127.0.0.1:1", ...extAuthz } }, backends: [{ host: "127.0.0.1:1" }] },
    ];
    const text = stringify({ binds: [{ port: 2, listeners: [{ routes }] }] }, { lineWidth: 0 });
    const { ok, diagnostics } = reportOf(loadConfig({ kind: "text", text }, {}));
    assert.equal(ok, true);
    const at = "binds[0].listeners[0].routes[0].policies.extAuthz.";
    return diagnostics.filter(({ path }) => path.startsWith(at)).map(({ path }) => path.slice(at.length));
  };
  const key = ["request.path", "source.address", "'x'", "jwt.sub", "request.headers['x-a']"];
  const ignore = ["query", "headers.cookie", "headers.user-agent", "headers.authorization"];
  const credentials = ["cache.ignore[1]", "cache.ignore[3]"];
  const cache = { key, ignore, ttl: "1m" };
  assert.deepEqual(warned({ cache }), [...[0, 1, 2, 4].map((i) => `cache.key[${i}]`), ...credentials]);
  assert.deepEqual(warned({ cache, protocol: { http: {} } }), ["cache.key[0]", "cache.key[2]", ...credentials]);
  assert.deepEqual(warned({ cache, protocol: { http: { path: "'/check'" } } }), ["cache.key[2]", ...credentials]);
  assert.deepEqual(warned({ cache: { ttl: "1m" } }), []);
});

test("check says that a retry at a lone address goes there again, and warns if the route has other backends", () => {
  const said = (retry: object, hosts: readonly string[], weight = 1): string[] => {
    const backends = hosts.map((host, i) => ({ host, weight: i === 0 ? 1 : weight }));
    const precondition = 'request.method == "GET"';
    const routes = [{ policies: { retry: { codes: [503], precondition, ...retry } }, backends }];
    const { diagnostics } = reportOf(
      loadConfig({ kind: "text", text: stringify({ binds: [{ port: 3, listeners: [{ routes }] }] }) }, {}),
    );
    return diagnostics.map((each) => `${each.severity} ${each.path} ${fullText(each)}`);
  };
  const at =
    "binds[0].listeners[0].routes[0].policies.retry a retry at 127.0.0.1:1 goes to the same endpoint again, also when it is down";
  const warning = `warning ${at}; with otherBackends: true it goes to another backend, false leaves it there`;
  // Equal shares are probably meant as a pool, which has advice of its own.
  assert.deepEqual(said({}, ["127.0.0.1:1", "other:2"], 9), [warning]);
  assert.deepEqual(said({}, ["other:2", "127.0.0.1:1"], 9), [warning]);
  assert.deepEqual(said({}, ["127.0.0.1:1"]), [`note ${at}; the route has no other`]);
  assert.deepEqual(said({}, ["127.0.0.1:1", "other:2"], 0), [`note ${at}; the route has no other`]);
  // Names may have several addresses, and there is no advice about a setting that is written.
  assert.deepEqual(said({}, ["one:1", "other:2"], 9), []);
  for (const otherBackends of [true, false]) assert.deepEqual(said({ otherBackends }, ["127.0.0.1:1", "other:2"]), []);
});

test("check advises a pool where a split of equal shares is retried or checked as one", () => {
  const said = (policies: object, weights: readonly number[], ofBackend: object = {}): string[] => {
    const backends = weights.map((weight, i) => ({ host: `server-${i}:80`, weight, policies: ofBackend }));
    const config = { binds: [{ port: 3, listeners: [{ routes: [{ policies, backends }] }] }] };
    const { diagnostics } = reportOf(loadConfig({ kind: "text", text: stringify(config) }, {}));
    return diagnostics.map((each) => `${each.severity} ${each.path} ${fullText(each)}`);
  };
  const retry = { retry: { codes: [503], precondition: 'request.method == "GET"' } };
  const [warning = ""] = said(retry, [1, 1]);
  assert.match(
    warning,
    /^warning binds\[0\]\.listeners\[0\]\.routes\[0\]\.backends server-0:80 and server-1:80 do not take over/,
  );
  assert.match(warning, /endpoints: \[\{host: "server-0:80"\}, \{host: "server-1:80"\}\]$/);
  assert.equal(said({}, [1, 1], { health: { eviction: { consecutiveFailures: 3 } } }).length, 1);
  assert.deepEqual(said(retry, [9, 1]), [], "a canary");
  assert.deepEqual(said({}, [1, 1]), [], "nothing says that one should take over");
  assert.deepEqual(said({ retry: { ...retry.retry, otherBackends: true } }, [1, 1]), []);
  assert.deepEqual(said(retry, [1]), []);
});

test("check warns about authentication that lets requests pass, unless an expression beside it reads who the client is", () => {
  const warned = (others: object): boolean => {
    const policies = { basicAuth: { htpasswd: "a:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=" }, ...others };
    const config = { gateways: { default: { port: 2 } }, routes: [{ policies, backends: [{ host: "127.0.0.1:1" }] }] };
    const { ok, diagnostics } = reportOf(loadConfig({ kind: "text", text: stringify(config) }, {}));
    assert.ok(ok, JSON.stringify(diagnostics));
    return diagnostics.some((each) => each.lint === "lenient-authentication");
  };
  for (const others of [
    { requestHeaderModifier: { set: { "x-by": "by basicAuth" } } },
    { transformations: { request: { set: { x: "'basicAuth'" } } } },
  ])
    assert.ok(warned(others), JSON.stringify(others));
  for (const others of [
    { authorization: { rules: [{ require: "has(basicAuth.username)" }] } },
    { transformations: { response: { set: { "x-user": "response.code == 200 ? basicAuth.username : ''" } } } },
  ])
    assert.ok(!warned(others), JSON.stringify(others));
});

test("rules about who the client is make up for optional credentials, unless they are in shadow", () => {
  const rules = [{ require: "has(basicAuth.username)" }];
  const basicAuth = { mode: "optional", htpasswd: "a:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=" };
  const warned = (authorization?: object): boolean => {
    const policies = { basicAuth, ...(authorization && { authorization }), directResponse: { status: 200 } };
    const text = stringify({ binds: [{ port: 2, listeners: [{ routes: [{ policies }] }] }] }, { lineWidth: 0 });
    const { diagnostics } = reportOf(loadConfig({ kind: "text", text }, {}));
    return diagnostics.some(({ lint }) => lint === "lenient-authentication");
  };
  assert.deepEqual([warned(), warned({ rules }), warned({ shadow: true, rules })], [true, false, true]);
});
