import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { appRoot } from "../../../base/app-root.ts";
import { loadConfig } from "../../../config/load.ts";
import { invoke } from "../../fixtures/invoke.ts";
import { SyntaxProblem } from "../findings.ts";
import { writeFile } from "../write-file.ts";
import { convertNginx } from "./convert.ts";

/** `line:column severity message; remedy` of each finding. */
function findings(text: string): string[] {
  return convertNginx("nginx.conf", text, undefined).findings.map(
    ({ line, column, severity, message, remedy }) =>
      `${line}:${column} ${severity} ${message}${remedy === undefined ? "" : `; ${remedy}`}`,
  );
}

/** The routes as they are written, by name. */
function routes(
  text: string,
): Record<string, { matches?: unknown; policies: Record<string, unknown>; backends?: unknown }> {
  const written = writeFile(convertNginx("nginx.conf", text, undefined));
  const loaded = loadConfig({ kind: "text", text: written }, {});
  assert.ok(loaded.ok, JSON.stringify(loaded));
  const { routes } = parse(written.replaceAll("$$", "$"));
  return Object.fromEntries(routes.map((each: { name: string }) => [each.name, each]));
}

function inServer(text: string): string {
  return `server { listen 8080; server_name shop.example;\n${text}\n}`;
}

test("the configurations that a real nginx is compared with are valid, and everything in them is converted", () => {
  const folder = `${appRoot}test/suites/nginx`;
  for (const name of readdirSync(folder).filter((each) => each.endsWith(".conf"))) {
    const converted = convertNginx(name, readFileSync(join(folder, name), "utf8"), undefined);
    const loaded = loadConfig({ kind: "text", text: writeFile(converted) }, {});
    assert.ok(loaded.ok, `${name}: ${JSON.stringify(loaded)}`);
    assert.deepEqual(
      converted.findings.filter(({ severity }) => severity === "error"),
      [],
      name,
    );
  }
});

test("what has no equivalent is listed with its place and what to do instead", () => {
  assert.deepEqual(
    findings(
      inServer(`location / { proxy_pass http://127.0.0.1:1; proxy_cache one; unheard_of 1; }
location ~ \\.php$ { fastcgi_pass unix:/run/php.sock; }
location ~ ^/(?!admin) { return 204; }
location /files/ { root /srv; }
location /dynamic/ { proxy_pass http://$backend; }
if ($request_method = PUT) { return 302 /b; }
rewrite ^/a$ /b last;`),
    ),
    [
      "2:1 error requests of location / get 501: unheard_of 1 may restrict them, and is not converted; add the policy that takes its place, then remove directResponse and name the backend",
      "2:45 error proxy_cache has no equivalent here; put a cache behind the gateway",
      "2:62 error unheard_of has no equivalent here",
      "3:1 error location ~ \\.php$ passes requests to no server: they get 501; the gateway serves no files: keep a file server behind it, and name it in backends",
      "3:21 error fastcgi_pass has no equivalent here; put a server that speaks HTTP before the application",
      "4:1 error the regular expression ^/(?!admin) is not converted: paths that match ^/ get 501; patterns are RE2, without look-around and back-references",
      "5:1 error location /files/ passes requests to no server: they get 501; the gateway serves no files: keep a file server behind it, and name it in backends",
      "6:22 error proxy_pass http://$backend has no equivalent: its requests get 501; write the backends that it stands for, or a dynamic one",
      "7:1 error if ($request_method = PUT) is left out; write a route with these conditions in matches",
      "8:1 error rewrite for all locations (last) is left out; rewrite in each location",
    ],
  );
});

test("requests of what cannot be converted get 501 and never reach a backend that they did not have", () => {
  const found = routes(
    inServer("location / { proxy_pass http://127.0.0.1:1; }\nlocation ~ \\.php$ { fastcgi_pass 127.0.0.1:9; }"),
  );
  assert.deepEqual(found["shop-example-php"]?.matches, [{ path: { regex: ".*\\.php" } }]);
  assert.deepEqual(found["shop-example-php"]?.policies.directResponse, {
    status: 501,
    body: "this path was not converted\n",
  });
  assert.equal(found["shop-example-php"]?.backends, undefined);
});

test("a location whose restriction cannot be converted gets 501, and is not open to everybody", () => {
  const restricted = [
    "auth_request /check;",
    "internal;",
    "allow office.example; deny all;",
    "if ($http_x_role != admin) { return 403; }",
    "if ($bad) { deny all; }",
    "if ($http_user_agent ~ bot) { return 404; }",
    "limit_except GET { deny all; }",
    "access_by_lua_file check.lua;",
    "include gone.conf;",
    "ssl_crl gone.pem;",
    'if ($cookie_session = "") { return 302 /login; }',
    "if ($http_user_agent ~ bot) { rewrite ^ /blocked break; }",
    "set_real_ip_from 10.0.0.0/8; allow 10.0.0.0/8; deny all;",
  ];
  for (const each of restricted)
    for (const text of [
      inServer(`location /a { ${each} proxy_pass http://127.0.0.1:1; }`),
      inServer(`${each}\nlocation /a { proxy_pass http://127.0.0.1:1; }`),
    ]) {
      const { policies, backends } = routes(text)["shop-example-a"] ?? {};
      assert.equal((policies?.directResponse as { status?: number } | undefined)?.status, 501, text);
      assert.equal(backends, undefined, text);
    }
  const open = routes(
    inServer("auth_request /check;\nlocation /a { auth_request off; proxy_pass http://127.0.0.1:1; }"),
  );
  assert.equal(open["shop-example-a"]?.policies.directResponse, undefined);
});

test("what nginx chooses in several steps is not open to more requests than there", () => {
  const backend = "proxy_pass http://127.0.0.1:1;";
  const closed = (...lines: readonly string[]): readonly string[] =>
    Object.values(routes(inServer(lines.join("\n")))).flatMap(({ matches, policies }) =>
      policies.directResponse === undefined ? [] : [JSON.stringify(matches).replaceAll("(?:)", "")],
    );
  const below = `location ^~ /a/ { ${backend} }\nlocation /a/b/ { deny all; ${backend} }`;
  assert.deepEqual(closed(below), []);
  // It is tried first.
  const [first] = Object.values(routes(inServer(below)));
  assert.deepEqual(first?.policies.requestRedirect, { path: { full: "/a/b/" }, status: 301 });
  assert.match(closed(below, "location ~ x { deny all; }")[0] ?? "", /"\/a\/b/);
  assert.match(closed(`location /a/ { ${backend} location ~ php$ { ${backend} } }`)[0] ?? "", /php/);
  assert.match(closed(`location ^~ /a/ { ${backend} location ~ php$ { deny all; } }`)[0] ?? "", /"\/a/);
  const inPattern = closed(`location ~ ^/u/ { ${backend} location /u/x { deny all; ${backend} } }`);
  assert.deepEqual(inPattern.length, 2);
  assert.match(
    closed(`location /a { rewrite ^/a(.*) $1 last; ${backend} }`, `location /b { deny all; ${backend} }`)[0] ?? "",
    /"\/a"/,
  );
});

test("hosts of a server whose name is a pattern do not get what the default server has", () => {
  const found = routes(`${inServer("location / { proxy_pass http://127.0.0.1:1; }")}
server { listen 8080; server_name ~^admin; deny all; location / { proxy_pass http://127.0.0.1:1; } }`);
  assert.deepEqual(
    Object.values(found).map(({ policies }) => (policies.directResponse as { status?: number } | undefined)?.status),
    [501, undefined],
  );
  const alone = routes("server { listen 8080; server_name ~^a; location / { proxy_pass http://127.0.0.1:1; } }");
  assert.deepEqual(
    Object.values(alone).map(({ backends }) => backends),
    [[{ host: "127.0.0.1:1" }]],
  );
});

test("a header that cannot be set is not left to clients", () => {
  const found = routes(inServer("location /a { proxy_set_header X-Role $role; proxy_pass http://127.0.0.1:1; }"));
  assert.deepEqual(found["shop-example-a"]?.policies.requestHeaderModifier, { remove: ["X-Role"] });
});

test("a regular expression that RE2 lacks closes what it may match, and not more", () => {
  const closed = (pattern: string): unknown => {
    const found = routes(inServer(`location /a { proxy_pass http://127.0.0.1:1; }\nlocation ${pattern} { deny all; }`));
    const [route, ...others] = Object.values(found).filter(({ policies }) => policies.directResponse !== undefined);
    assert.deepEqual(others, []);
    return JSON.stringify(route?.matches).replaceAll("(?:)", "");
  };
  assert.equal(closed("~ ^/admin/(?!open)"), '[{"path":{"regex":"/admin/.*"}}]');
  assert.equal(closed("~* ^/admins?(?!open)"), '[{"path":{"regex":"(?i)/admin.*"}}]');
  assert.equal(closed("~ ^/a(?!b)|^/c"), '[{"path":{"regex":".*"}}]');
  assert.equal(closed("~ (?<!x)secret"), '[{"path":{"regex":".*"}}]');
});

test("a condition on the host is not lost where a listener has more hosts", () => {
  const text = (names: string): string =>
    `server { listen 8080; server_name ${names}; if ($host = admin.example) { return 403; }
location / { proxy_pass http://127.0.0.1:1; } }`;
  const statuses = (names: string): unknown =>
    Object.values(routes(text(names))).map(({ policies }) => (policies.directResponse as { status: number })?.status);
  assert.deepEqual(statuses("*.example"), [501]);
  assert.deepEqual(statuses("shop.example admin.example"), [403, undefined]);
  const returning = inServer('if ($bad) { return 403; }\nreturn 200 "secret";');
  assert.deepEqual(
    Object.values(routes(returning)).map(({ policies }) => policies.directResponse),
    [{ status: 501, body: "this path was not converted\n" }],
  );
});

test("where files are missing, what restricts the named location and what it sends count too", () => {
  const routeOf = (own: string, named: string) =>
    routes(
      inServer(`location /a { try_files $uri @app; ${own} }
location @app { proxy_pass http://127.0.0.1:1; proxy_set_header X-Fixed yes; ${named} }`),
    )["shop-example-a"];
  const plain = routeOf("", "");
  assert.deepEqual(plain?.policies.requestHeaderModifier, { set: { "X-Fixed": "yes" } });
  assert.deepEqual(plain?.backends, [{ host: "127.0.0.1:1" }]);
  const closed = { status: 501, body: "this path was not converted\n" };
  assert.deepEqual(routeOf("", "auth_request /check;")?.policies.directResponse, closed);
  assert.deepEqual(routeOf("if ($bad) { return 403; }", "")?.policies.directResponse, closed);
  assert.deepEqual(routeOf("allow 10.0.0.0/8; deny all;", "deny 10.1.0.0/16;")?.policies.directResponse, closed);
  assert.deepEqual(routeOf("allow 10.0.0.0/8; deny all;", "")?.policies.ipAccess, { allow: ["10.0.0.0/8"] });
  assert.deepEqual(routeOf("satisfy any;", "")?.policies.directResponse, closed);
  assert.deepEqual(routeOf("", "try_files $uri @app;")?.backends, [{ host: "127.0.0.1:1" }]);
  assert.deepEqual(routeOf("", "allow 10.0.0.0/8; deny all;")?.policies.ipAccess, { allow: ["10.0.0.0/8"] });
});

test("satisfy any: an address or a password, as nginx reads allow and deny for it", (context) => {
  const policiesOf = (lines: string) =>
    routes(inServer(`${lines}\nlocation /a { proxy_pass http://127.0.0.1:1; }`))["shop-example-a"]?.policies ?? {};
  const folder = mkdtempSync(join(tmpdir(), "users-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "users");
  writeFileSync(file, "jo:{SHA}nU4eI71bcnBGqeO0t9tXvY1u5oQ=\n");
  const users = `auth_basic "Office"; auth_basic_user_file ${file};`;
  const password = `${users} satisfy any;`;
  const basicAuth = { mode: "strict", realm: "Office", htpasswd: { file } };
  const anyOf = (ipAccess: object) => ({ any: [{ ipAccess }, { basicAuth }] });
  const allow = ["10.0.0.0/8"];
  for (const lines of ["allow 10.0.0.0/8; deny all;", "allow 10.0.0.0/8;"])
    assert.deepEqual(policiesOf(`${password} ${lines}`).satisfy, anyOf({ allow }), lines);
  const denied = policiesOf(`${password} deny 10.1.0.0/16; allow 10.0.0.0/8; deny all;`);
  assert.deepEqual(denied.satisfy, anyOf({ allow, deny: ["10.1.0.0/16"] }));
  assert.equal(denied.basicAuth, undefined);
  assert.equal(denied.ipAccess, undefined);
  const open = policiesOf(`${password} deny 10.1.0.0/16; allow all;`).satisfy;
  assert.deepEqual(open, anyOf({ allow: ["0.0.0.0/0", "::/0"], deny: ["10.1.0.0/16"] }));
  for (const lines of ["deny 10.1.0.0/16;", "deny all;", ""]) {
    const { basicAuth: own, satisfy, ipAccess } = policiesOf(`${password} ${lines}`);
    assert.deepEqual([own, satisfy, ipAccess], [basicAuth, undefined, undefined], lines);
  }
  assert.deepEqual(policiesOf("satisfy any; allow 10.0.0.0/8; deny all;").ipAccess, { allow });
  const all = policiesOf(`${users} satisfy all; allow 10.0.0.0/8; deny all;`);
  assert.deepEqual([all.basicAuth, all.ipAccess, all.satisfy], [basicAuth, { allow }, undefined]);
});

test("a second server with the same name adds nothing to the first one, as in nginx", () => {
  const found = routes(`${inServer("location /a { return 204; }")}\n${inServer("location /b { return 204; }")}`);
  assert.deepEqual(Object.keys(found), ["shop-example-a"]);
});

test("redirects of a server come before its locations, and before a return that follows them", () => {
  const rewrite = "rewrite ^/old /new permanent;";
  const before = routes(inServer(`${rewrite}\nlocation /old/with/a/long/path { return 204; }`));
  const matches = JSON.stringify(before["shop-example-rewrite"]?.matches);
  assert.equal(matches.replaceAll("(?:)", ""), '[{"path":{"regex":"/old.*"}}]');
  assert.ok(matches.length > '[{"path":{"regex":"/old/with/a/long/path"}}]'.length);
  assert.deepEqual(Object.keys(routes(inServer(`${rewrite}\nreturn 404;`))), [
    "shop-example-rewrite",
    "shop-example-return",
  ]);
  assert.deepEqual(Object.keys(routes(inServer(`return 404;\n${rewrite}`))), ["shop-example-return"]);
});

test("a nested location has the settings of the one around it, but not its redirects and conditions", () => {
  const found = routes(
    inServer(`location /a { allow 10.0.0.0/8; deny all; if ($bad) { return 403; } rewrite ^ /b permanent; return 404;
location /a/b { proxy_pass http://127.0.0.1:1; } }`),
  );
  assert.deepEqual(found["shop-example-a-b"]?.policies.ipAccess, { allow: ["10.0.0.0/8"] });
  assert.deepEqual(found["shop-example-a-b"]?.backends, [{ host: "127.0.0.1:1" }]);
});

test("client certificates, servers that are down and error pages", () => {
  const server = (more: string) => `server { listen 8443 ssl; server_name shop.example; ssl_certificate /c.pem;
ssl_certificate_key /k.pem; ${more} location / { return 204; } }`;
  const tls = (more: string): unknown =>
    convertNginx("nginx.conf", server(more), undefined).ports[0]?.listeners[0]?.tls;
  const pair = { cert: "/c.pem", key: "/k.pem" };
  assert.deepEqual(tls("ssl_verify_client on; ssl_client_certificate /ca.pem;"), { ...pair, root: "/ca.pem" });
  assert.deepEqual(tls("ssl_verify_client on; ssl_trusted_certificate /ca.pem;"), { ...pair, root: "/ca.pem" });
  const optional = { ...pair, root: "/ca.pem", clientCertificates: "optional" };
  assert.deepEqual(tls("ssl_verify_client optional; ssl_client_certificate /ca.pem;"), optional);
  const pool = `upstream u { server 127.0.0.1:1; server 127.0.0.1:2 down; }`;
  const { backends } = convertNginx(
    "nginx.conf",
    `${pool} ${inServer("location / { proxy_pass http://u; }")}`,
    undefined,
  );
  assert.deepEqual(backends, [{ name: "u", endpoints: [{ host: "127.0.0.1:1" }] }]);
  assert.deepEqual(
    findings(inServer("error_page 404 =200 /e.html; root /srv; location / { proxy_pass http://127.0.0.1:1; }")).slice(
      0,
      1,
    ),
    ["2:1 error error_page 404 =200 /e.html is left out; write the page into errorPages"],
  );
});

test("grpc_pass has its own settings, HTTP/2 and the scheme of its URL", () => {
  const settings = "proxy_set_header X-Not here; grpc_set_header X-A a; grpc_read_timeout 30s;";
  const text = `${settings} location /a { grpc_pass api.example:50051; } location /b { grpc_pass grpcs://api.example:50051; grpc_connect_timeout 2s; }`;
  assert.deepEqual(
    findings(inServer(text)).map((each) => each.slice(0, 13)),
    ["2:135 warning"],
  );
  const { a, b } = Object.fromEntries(
    Object.entries(routes(inServer(text))).map(([name, each]) => [name.split("-").at(-1), each]),
  );
  assert.deepEqual(a?.policies.requestHeaderModifier, { set: { "X-A": "a" } });
  assert.deepEqual(a?.policies.timeout, { requestTimeout: "30s" });
  assert.deepEqual(a?.backends, [{ host: "api.example:50051", policies: { http: { version: "HTTP/2.0" } } }]);
  assert.deepEqual(b?.backends, [
    {
      host: "api.example:50051",
      policies: {
        backendTLS: { insecure: true },
        tcp: { connectTimeout: "2s" },
        http: { version: "HTTP/2.0" },
      },
    },
  ]);
});

test("programs in Lua are read over, and those that may restrict close their location", () => {
  const text = `location / {
    set_by_lua_block $x { return "}" .. '}' --[[ } ]] -- }
      .. [[ } ]] }
    access_by_lua_block { local t = { a = { 1 } } ngx.say("don't }") }
    proxy_pass http://127.0.0.1:1;
  }
  location /open { content_by_lua_block {} }
  location /also { proxy_pass http://127.0.0.1:1; }`;
  assert.deepEqual(
    Object.values(routes(inServer(text))).map(({ backends }) => backends),
    [undefined, [{ host: "127.0.0.1:1" }], undefined],
  );
  assert.match(findings(inServer(text)).join("\n"), /^2:1 error requests of location \/ get 501: access_by_lua_block/m);
  assert.throws(() => findings("location / { access_by_lua_block { if {"), /the block has no end/);
});

test("a page for 502 is also that for the 503 of a backend that cannot be reached", () => {
  const text =
    "root /srv; proxy_intercept_errors on; error_page 502 /e.html; location / { proxy_pass http://127.0.0.1:1; }";
  const {
    routes: [route],
  } = convertNginx("nginx.conf", inServer(text), undefined);
  const html = { file: "/srv/e.html" };
  assert.deepEqual(route?.policies.errorPages, [
    { statuses: [502], from: "both", html },
    { statuses: [503], from: "gateway", html },
  ]);
});

test("a port listens only where nginx does", () => {
  const gateways = (...listens: readonly string[]): unknown => {
    const text = listens.map((each, i) => `server { ${each} server_name s${i}.example; return 204; }`).join("\n");
    const converted = convertNginx("nginx.conf", text, undefined);
    const written = writeFile(converted);
    assert.ok(loadConfig({ kind: "text", text: written }, {}).ok, written);
    const { gateways } = parse(written);
    return [gateways["port-81"].address, converted.findings.map(({ line, message }) => `${line} ${message}`)];
  };
  assert.deepEqual(gateways("listen 127.0.0.1:81;"), ["127.0.0.1", []]);
  assert.deepEqual(gateways("listen localhost:81; listen [::1]:81;"), [["127.0.0.1", "::1"], []]);
  assert.deepEqual(gateways("listen 81; listen [::]:81;"), [undefined, []]);
  assert.deepEqual(gateways("listen 127.0.0.1:81;", "listen 81;"), [
    undefined,
    [
      "1 listens on every address, not only on 127.0.0.1: other servers do on this port",
      "1 requests of return 204 get 501: listen 127.0.0.1:81 may restrict them, and is not converted",
    ],
  ]);
  assert.deepEqual(gateways("listen 127.0.0.1:81;", "listen 127.0.0.2:81;"), [
    ["127.0.0.1", "127.0.0.2"],
    [
      "1 listens on 127.0.0.2, not only on 127.0.0.1: other servers do on this port",
      "1 requests of return 204 get 501: listen 127.0.0.1:81 may restrict them, and is not converted",
      "2 listens on 127.0.0.1, not only on 127.0.0.2: other servers do on this port",
      "2 requests of return 204 get 501: listen 127.0.0.2:81 may restrict them, and is not converted",
    ],
  ]);
});

test("the text of a directive cannot leave its comment", () => {
  const written = writeFile(
    convertNginx("nginx.conf", inServer('location "/a\nroutes: []" { return 204; }'), undefined),
  );
  assert.equal(written.match(/^routes:/gm)?.length, 1);
});

test("who may come in, and how much", () => {
  const folder = mkdtempSync(join(tmpdir(), "tracegate-convert-"));
  try {
    const users = join(folder, "users");
    writeFileSync(users, "alice:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=");
    const found = routes(`limit_req_zone $binary_remote_addr zone=one:10m rate=5r/m;
limit_conn_zone $binary_remote_addr zone=client:10m; limit_conn_zone $server_name zone=all:1m;
${inServer(`location /in {
  auth_basic "The office"; auth_basic_user_file ${users};
  limit_req zone=one burst=2 nodelay; limit_req_status 429; proxy_pass http://127.0.0.1:1;
  limit_conn client 4; limit_conn all 100; limit_conn gone 1; limit_conn_status 429;
}
location /net {
  deny 10.1.0.0/16; allow 10.0.0.0/8; deny all; proxy_pass http://127.0.0.1:1; client_max_body_size 0;
}`)}`);
    const { basicAuth, concurrencyLimit, localRateLimit, maxRequestBodySize } =
      found["shop-example-in"]?.policies ?? {};
    assert.deepEqual(basicAuth, { mode: "strict", realm: "The office", htpasswd: { file: users } });
    assert.deepEqual(concurrencyLimit, [{ maxRequests: 4, key: "source.address" }, { maxRequests: 100 }]);
    assert.deepEqual(localRateLimit, [
      { maxTokens: 3, tokensPerFill: 1, fillInterval: "12000ms", key: "source.address" },
    ]);
    assert.equal(maxRequestBodySize, "1MiB");
    assert.deepEqual(found["shop-example-net"]?.policies.ipAccess, { allow: ["10.0.0.0/8"], deny: ["10.1.0.0/16"] });
    assert.equal(found["shop-example-net"]?.policies.maxRequestBodySize, 0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("what cannot be read says where", () => {
  const where = (text: string): string => {
    try {
      findings(text);
    } catch (error) {
      assert.ok(error instanceof SyntaxProblem);
      return `${error.place.line}:${error.place.column} ${error.message}`;
    }
    return "";
  };
  assert.equal(where("server {\n  listen 80"), '2:3 listen has no end; add ";"');
  assert.equal(where("server {\n  listen 80;"), '1:8 the block has no end; add "}"');
  assert.equal(where("a; }"), '1:4 "}" ends no block');
  assert.equal(where("a 'b;"), "1:3 the text in ' has no end");
  assert.equal(where("a {".repeat(40)), "1:97 more than 32 blocks in each other");
});

test("includes are read below the folder of the file, and nowhere else", () => {
  const folder = mkdtempSync(join(tmpdir(), "tracegate-convert-"));
  try {
    const own = join(folder, "own");
    mkdirSync(join(own, "conf.d"), { recursive: true });
    writeFileSync(join(folder, "secret.conf"), "location /secret { return 204; }");
    symlinkSync(join(folder, "secret.conf"), join(own, "conf.d", "z-link.conf"));
    writeFileSync(join(own, "conf.d", "a.conf"), "location /a { return 204; }");
    writeFileSync(join(own, "loop.conf"), "include loop.conf;");
    const path = join(own, "nginx.conf");
    const text = inServer("include conf.d/*.conf;\ninclude ../secret.conf;\ninclude gone.conf;");
    writeFileSync(path, text);
    const { routes, findings } = convertNginx(path, text, path);
    assert.deepEqual(
      routes.map(({ matches }) => matches[0]),
      [{ path: { pathPrefix: "/a" } }],
    );
    assert.deepEqual(
      findings.map(({ line, message }) => `${line} ${message}`),
      [
        "2 include conf.d/*.conf: conf.d/z-link.conf leads out of the folder of the file",
        "3 include ../secret.conf: not below the folder of the file",
        "4 include gone.conf: there is no such file",
        "1 requests of location /a get 501: include conf.d/*.conf may restrict them, and is not converted",
      ],
    );
    assert.throws(() => convertNginx(path, "include loop.conf;", path), /loop.conf includes itself/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("the command writes a file, lists what is missing, and is strict if asked", async () => {
  const text = inServer("location / { proxy_pass http://127.0.0.1:1; proxy_cache one; }");
  const { code, stdout, stderr } = await invoke(["convert", "nginx", `${appRoot}test/suites/nginx/redirects.conf`]);
  assert.equal(code, 0);
  assert.ok(loadConfig({ kind: "text", text: stdout }, {}).ok);
  assert.equal(stderr, "");
  const folder = mkdtempSync(join(tmpdir(), "tracegate-convert-"));
  try {
    const file = join(folder, "nginx.conf");
    writeFileSync(file, text);
    const strict = await invoke(["convert", "nginx", file, "--strict"]);
    assert.equal(strict.code, 1);
    assert.equal(
      strict.stderr,
      `${file}:2:45: error: proxy_cache has no equivalent here; put a cache behind the gateway\n`,
    );
    writeFileSync(file, "server {");
    assert.match((await invoke(["convert", "nginx", file])).stderr, /nginx\.conf:1:8: the block has no end/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
