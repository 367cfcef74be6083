import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { invoke } from "../../fixtures/invoke.ts";
import { SyntaxProblem } from "../findings.ts";
import { convertCaddy } from "./convert.ts";

/** The routes of a site, by what they come from. */
function routes(block: string) {
  return convertCaddy("Caddyfile", `http://shop.example {\n${block}\n}`, undefined).routes.map(
    ({ matches, policies, backends, hostnames }) => ({
      matches: matches.map(({ path, ...others }) => ({ ...(path as object), ...others })),
      kinds: Object.keys(policies).sort(),
      status: (policies.directResponse as { status?: number } | undefined)?.status,
      backends: backends.map(({ host, backend }) => host ?? backend),
      policies,
      hostnames,
    }),
  );
}

const HASH = "$2a$04$Y2B3QpRi9iF7u0XJyqX1kOCx6nbFOyjiD0.xNIHt5U9MNbKjYoD6W";

test("what may restrict requests and is not converted closes what it may restrict, and nothing else", () => {
  const closing: readonly string[] = [
    "rate_limit 10r/s",
    "basic_auth argon2id {\nalice $argon2id$x\n}",
    "basic_auth {\n}",
    `@x expression true\nbasic_auth @x {\nalice ${HASH}\n}`,
    `@x not expression true\nbasic_auth @x {\nalice ${HASH}\n}`,
    `@x {\nnot path /open\nexpression true\n}\nbasic_auth @x {\nalice ${HASH}\n}`,
    "@x not path /open\nforward_auth @x auth:80 {\nuri /x\nheader_up X y\n}",
    "@x not path /open\nrespond @x 403",
    "forward_auth {args[0]}",
    "import gone",
    "request_header -X-User-*",
    "reverse_proxy b:80 {\nheader_up -X-User-*\n}",
    "uri strip_prefix /api\nrespond /admin* 403",
    `handle_path /* {\nbasic_auth /admin* {\nalice ${HASH}\n}\nreverse_proxy app:80\n}`,
    "forward_auth auth:80 {\nuri /x\nheader_up X y\n}",
    "@x expression true\nrespond @x 403",
    "@x header_regexp Cookie (?!a)\nhandle @x {\nabort\n}",
    `basic_auth {\nalice ${HASH}\n}\nbasic_auth {\nbob ${HASH}\n}`,
    "@a remote_ip 10.0.0.0/8\n@b remote_ip 192.0.2.0/24\nrespond @a 403\nrespond @b 403\nforward_auth auth:80",
  ];
  for (const each of closing)
    for (const { status, backends } of routes(`${each}\nreverse_proxy app:80`))
      assert.deepEqual([status, backends], [501, []], each);
  const part = routes(`rate_limit /api/* 10r/s\nreverse_proxy app:80`);
  assert.deepEqual(
    part.map(({ matches, status }) => [matches, status]),
    [
      [[{ regex: "(?i)/api/.*" }], 501],
      [[], undefined],
    ],
  );
});

test("what a matcher with not excludes gets routes of its own, without the restriction", () => {
  const auth = `basic_auth @x {\nalice ${HASH}\n}\nreverse_proxy app:80`;
  const kindsOf = (matcher: string) =>
    routes(`@x ${matcher}\n${auth}`).map(({ matches, kinds, status }) => [matches, kinds, status]);
  assert.deepEqual(kindsOf("not path /open /free/*"), [
    [[{ exact: "/open" }, { regex: "/free/.*" }], [], undefined],
    [[], ["basicAuth"], undefined],
  ]);
  assert.deepEqual(kindsOf("{\nmethod POST\nnot header X-Token abc\nnot path /in/*\n}"), [
    [[{ regex: "(?:/.*)?", headers: [{ name: "X-Token", value: { exact: "abc" } }] }], [], undefined],
    [[{ regex: "/in/.*" }], [], undefined],
    [[{ method: "POST" }], ["basicAuth"], undefined],
    [[], [], undefined],
  ]);
  // Whether a path is in both of two expressions is not known.
  const both = routes(
    `@x not path_regexp ^/a+$\n${auth.replace("reverse_proxy", "@y path_regexp ^/b+$\nreverse_proxy @y")}`,
  );
  assert.equal(both.find(({ matches }) => JSON.stringify(matches).includes("/b+"))?.status, 501);
});

test("handle_errors with texts become pages, up to the first that does more", () => {
  const [route] = routes(
    'handle_errors 502 {\nrespond "{\\"status\\": {err.status_code}}"\n}\nhandle_errors 5xx {\nrespond sorry\n}\nhandle_errors {\nfile_server\n}\nhandle_errors {\nrespond late\n}\nreverse_proxy app:80',
  );
  assert.deepEqual(route?.policies.errorPages, [
    { statuses: [502, 503], json: '{"status": {{ response.code }}}' },
    { statuses: ["5xx"], text: "sorry" },
  ]);
  for (const other of [
    "respond x 200",
    "respond /a x",
    'respond "{err.message}"',
    'respond "{{ 1 }}"',
    "respond 404",
    "respond x {\nclose\n}",
  ])
    assert.equal(
      routes(`handle_errors {\n${other}\n}\nreverse_proxy app:80`)[0]?.policies.errorPages,
      undefined,
      other,
    );
  const [error] = routes(
    'error 410\nhandle_errors 404 {\nrespond other\n}\nhandle_errors 4xx {\nrespond "gone: {err.status_code}"\n}',
  );
  assert.deepEqual(error?.policies.directResponse, {
    status: 410,
    body: "gone: 410",
    headers: { "content-type": '"text/plain; charset=utf-8"' },
  });
});

test("attempts and probes are those of Caddy", () => {
  const [route] = routes("reverse_proxy a:80 {\nlb_retries 2\nlb_try_interval 1s\nhealth_uri /up\nhealth_passes 2\n}");
  assert.deepEqual(route?.policies.retry, {
    attempts: 2,
    codes: [],
    backoff: "1s",
    precondition: 'request.method == "GET"',
  });
  const { findings } = convertCaddy(
    "Caddyfile",
    "http://a {\nlog\nreverse_proxy a:80 {\nlb_try_duration 5s\n}\n}",
    undefined,
  );
  assert.deepEqual(
    findings.map(({ severity, line }) => [severity, line]),
    [
      ["note", 2],
      ["warning", 4],
    ],
  );
});

test("redirects to HTTPS listen where their site does", () => {
  const bound = (text: string) =>
    convertCaddy("Caddyfile", text, undefined).ports.map(({ port, addresses }) => [port, addresses]);
  const site = (name: string, bind: string) => `${name} {\n${bind}\nrespond hi\n}\n`;
  assert.deepEqual(bound(site("a.example.com", "bind 127.0.0.1")), [
    [443, ["127.0.0.1"]],
    [80, ["127.0.0.1"]],
  ]);
  assert.deepEqual(bound(site("a.example.com", "bind 127.0.0.1") + site("http://b.example.com", ""))[1], [
    80,
    undefined,
  ]);
});

test("a condition that no route can have closes what it may select, not what others serve", () => {
  const found = routes(
    "@x expression true\nhandle /api/* {\nreverse_proxy @x a:80\nreverse_proxy b:80\n}\nreverse_proxy c:80",
  );
  assert.deepEqual(
    found.map(({ matches, status, backends }) => [matches, status, backends]),
    [
      [[{ regex: "(?i)/api/.*" }], 501, []],
      [[], undefined, ["c:80"]],
    ],
  );
});

test("addresses that decide who gets in become ipAccess", () => {
  const access = (block: string) => routes(block).map(({ policies, backends }) => [policies.ipAccess, backends]);
  const office = "@office remote_ip 10.0.0.0/8 private_ranges\n";
  const [[allowed] = []] = access("@others not remote_ip 10.0.0.0/8\nrespond @others 403\nreverse_proxy a:80");
  assert.deepEqual(allowed, { allow: ["10.0.0.0/8"] });
  assert.deepEqual(access("@bad remote_ip 192.0.2.1\nabort @bad\nreverse_proxy a:80"), [
    [{ deny: ["192.0.2.1"] }, ["a:80"]],
  ]);
  const [first] = access(`${office}handle @office {\nreverse_proxy a:80\n}\nhandle {\nrespond 403\n}`);
  assert.match(JSON.stringify(first?.[0]), /^\{"allow":\["10\.0\.0\.0\/8","192\.168\.0\.0\/16"/);
  // A choice between two servers is none.
  assert.deepEqual(
    routes(`${office}handle @office {\nreverse_proxy a:80\n}\nhandle {\nreverse_proxy b:80\n}`).map(
      ({ status }) => status,
    ),
    [501],
  );
});

test("handlers with a matcher concern only what they select, in the order of Caddy", () => {
  const found = routes(
    "reverse_proxy app:80\nheader /static/* Cache-Control no-store\n@post method POST\nrequest_body @post {\nmax_size 1MB\n}",
  );
  assert.deepEqual(
    found.map(({ matches, kinds }) => [matches, kinds]),
    [
      [[{ regex: "/static/.*", method: "POST" }], ["maxRequestBodySize", "responseHeaderModifier"]],
      [[{ regex: "/static/.*" }], ["responseHeaderModifier"]],
      [[{ method: "POST" }], ["maxRequestBodySize"]],
      [[], []],
    ],
  );
});

test("handle and handle_path are alternatives, of which the longest path comes first", () => {
  const inner = `basic_auth {\nalice ${HASH}\n}\nreverse_proxy admin:80`;
  const found = routes(
    `handle {\nreverse_proxy app:80\n}\nhandle /admin/a/* {\nreverse_proxy a:80\n}\nhandle_path /admin/* {\n${inner}\n}`,
  );
  assert.deepEqual(
    found.map(({ matches, backends, kinds }) => [matches, backends, kinds.includes("basicAuth")]),
    [
      [[{ regex: "/admin/a/.*(?:)" }], ["a:80"], false],
      [[{ regex: "(?i)/admin/.*" }], ["admin:80"], true],
      [[], ["app:80"], false],
    ],
  );
});

test("a login and a route that no one match can have together close the route", () => {
  const found = routes(`@a header X 1\n@b header X 2\nbasic_auth @a {\nalice ${HASH}\n}\nreverse_proxy @b app:80`);
  assert.equal(found[0]?.status, 501);
});

test("a handler for what is below a path does not concern the path itself", () => {
  const found = routes("header /a/b* X y\nrespond /a 403\nreverse_proxy app:80");
  assert.deepEqual(
    found.map(({ matches, status }) => [matches, status]),
    [
      [[{ regex: "(?i)/a" }], 403],
      [[{ regex: "/a/b.*" }], undefined],
      [[], undefined],
    ],
  );
});

test("paths of restrictions count in every case, and matchers belong to their block", () => {
  const found = routes(`basic_auth /Private* {\nalice ${HASH}\n}\nreverse_proxy /private* a:80`);
  assert.deepEqual(found[0]?.kinds, ["basicAuth"]);
  assert.deepEqual(routes("respond /Admin* 403\nreverse_proxy a:80")[0]?.matches, [{ regex: "(?i)/Admin.*" }]);
  const block = "@x path /open\nhandle /a* {\n@x path /other\nrespond @x 204\n}\nrespond @x 403\nreverse_proxy a:80";
  assert.deepEqual(
    routes(block)
      .map(({ matches, status }) => [matches, status])
      .at(-2),
    [[{ regex: "(?i)/open" }], 403],
  );
});

test("a route for all hosts that comes before one for a host keeps its place", () => {
  const { routes } = convertCaddy(
    "Caddyfile",
    "http://*.example {\nroute {\nrespond /admin* 403\n@a host a.example\nreverse_proxy @a a:80\nreverse_proxy b:80\n}\n}",
    undefined,
  );
  assert.deepEqual(
    routes.map(({ hostnames, backends }) => [hostnames, backends.length]),
    [
      [undefined, 0],
      [["a.example"], 0],
      [["a.example"], 1],
      [undefined, 1],
    ],
  );
  const nested =
    "@w host *.b.example\nhandle @w {\n@a host a.b.example\nrespond @a 403\nreverse_proxy b:80\n}\nreverse_proxy c:80";
  const closed = convertCaddy("Caddyfile", `http://*.example {\n${nested}\n}`, undefined).routes[0];
  assert.deepEqual(closed?.policies.directResponse, { status: 501, body: "this path was not converted\n" });
});

test("a header that cannot be set is not left to clients", () => {
  const [route] = routes("request_header X-Role {vars.role}\nreverse_proxy a:80");
  assert.deepEqual(route?.policies.requestHeaderModifier, { remove: ["X-Role"] });
});

test("sites that no listener can stand for close those that would get their requests", () => {
  const statuses = (text: string): unknown =>
    convertCaddy("Caddyfile", text, undefined).routes.map(
      ({ policies }) => (policies.directResponse as { status?: number } | undefined)?.status,
    );
  const proxy = (address: string, more = "") => `${address} {\n${more}\nreverse_proxy a:80\n}\n`;
  assert.deepEqual(statuses(proxy("http://a.example") + proxy("http://a.example/admin")), [501]);
  assert.deepEqual(statuses(proxy("http://a.example") + proxy("http://b.example/admin")), [undefined]);
  assert.deepEqual(statuses(proxy(":80") + proxy("http://{$HOST}")), [501]);
  assert.deepEqual(
    statuses(`{\nauto_https disable_redirects\n}\n${proxy("a.example", "tls {\nimport gone\n}")}`),
    [501],
  );
  assert.deepEqual(statuses(proxy(":80", "bind 127.0.0.1")), [undefined]);
  assert.deepEqual(statuses(proxy(":80", "bind 127.0.0.1") + proxy("http://b.example")), [501, undefined]);
  assert.deepEqual(statuses(`{\norder respond before handle\n}\n${proxy("http://a.example")}`), [501]);
  const { ports } = convertCaddy("Caddyfile", `{\ndefault_bind ::1\n}\n${proxy(":80")}`, undefined);
  assert.deepEqual(ports[0]?.addresses, ["::1"]);
});

test("addresses are those that proxies report only where Caddy trusts them", () => {
  const statuses = (trust: string, matcher: string): unknown =>
    convertCaddy(
      "Caddyfile",
      `{\nservers {\ntrusted_proxies ${trust}\n}\n}\nhttp://a {\n@bad ${matcher} 192.0.2.1\nrespond @bad 403\nreverse_proxy a:80\n}`,
      undefined,
    ).routes.map(({ policies }) => Object.keys(policies)[0]);
  assert.deepEqual(statuses("static private_ranges", "client_ip"), ["ipAccess"]);
  assert.deepEqual(statuses("static private_ranges", "remote_ip"), ["directResponse"]);
  assert.deepEqual(statuses("cloudflare", "client_ip"), ["directResponse"]);
});

test("sites: ports, certificates, redirects", () => {
  const sites = (text: string) => {
    const { ports, routes } = convertCaddy("Caddyfile", text, undefined);
    return [
      ports.map(({ port, listeners }) => [port, ...listeners.map(({ hostname, tls }) => [hostname, tls])]),
      routes.length,
    ];
  };
  const acme = { acme: {} };
  assert.deepEqual(sites("a.example {\nrespond 200\n}"), [
    [
      [443, ["a.example", acme]],
      [80, ["a.example", undefined]],
    ],
    2,
  ]);
  assert.deepEqual(sites(":8080\nrespond 200"), [[[8080, ["*", undefined]]], 1]);
  assert.deepEqual(sites("{\nauto_https disable_redirects\n}\na.example:8443 {\nrespond 200\n}"), [
    [[8443, ["a.example", acme]]],
    1,
  ]);
  assert.deepEqual(sites("http://a.example, https://a.example {\nrespond 200\n}")[1], 1);
  const tlsOf = (text: string) => convertCaddy("Caddyfile", text, undefined).ports[0]?.listeners[0]?.tls;
  assert.deepEqual(tlsOf("*.example.com {\ntls a@b.example {\ndns cloudflare x\n}\nrespond 200\n}"), {
    acme: { email: "a@b.example", challenge: "dns-01", dns: { command: ["./dns-hook"] } },
  });
  assert.equal(tlsOf("localhost {\nrespond 200\n}")?.mode, "dynamicCa");
});

test("the syntax: heredocs, quotes, continued lines, snippets with arguments", () => {
  const [first] = routes("respond <<TEXT\n  two\n    lines\n  TEXT 200");
  assert.match(JSON.stringify(first?.policies.directResponse), /"body":"two\\n {2}lines"/);
  assert.deepEqual(
    routes('header A "b \\"c\\""\nrespond `{"a":1}` \\\n  201').map(({ status, policies }) => [
      status,
      policies.responseHeaderModifier,
    ]),
    [[201, { set: { A: 'b "c"' } }]],
  );
  const snippet = "(allow) {\n@out not remote_ip {args[1:]}\nrespond @out 403\n}\n";
  assert.deepEqual(
    convertCaddy("Caddyfile", `${snippet}http://a {\nimport allow x 10.0.0.0/8 ::1\nreverse_proxy a:80\n}`, undefined)
      .routes[0]?.policies.ipAccess,
    { allow: ["10.0.0.0/8", "::1"] },
  );
  const { routes: both } = convertCaddy(
    "Caddyfile",
    "(to) {\nreverse_proxy {args[0]}:{args[1]}\n}\nhttp://a {\nimport to app 81\n}\nhttp://b {\nimport to app 82\n}",
    undefined,
  );
  assert.deepEqual(
    both.map(({ backends }) => backends),
    [[{ host: "app:81" }], [{ host: "app:82" }]],
  );
});

test("what cannot be read says where", () => {
  const where = (text: string): string => {
    try {
      convertCaddy("Caddyfile", text, undefined);
    } catch (error) {
      assert.ok(error instanceof SyntaxProblem);
      return `${error.place.line}:${error.place.column} ${error.message}`;
    }
    return "";
  };
  assert.equal(where("a {\n  respond 200"), '1:3 the block has no end; add "}"');
  assert.equal(where("a {\n}\nb"), '3:1 b has no block; add "{" and "}"');
  assert.equal(where('a {\n respond "x'), '2:10 the text in " has no end');
  assert.equal(where("a {\n respond <<X\n y"), "2:10 the text after <<X has no end");
  assert.equal(where("(x) {\nimport x\nimport x\n}\na {\nimport x\n}"), "2:1 imports do not end, or are too long");
  const brace = '"{" must be the last word of its line; put what follows on lines of its own';
  assert.equal(where("a {\n basic_auth { alice X }\n}"), `2:13 ${brace}`);
  assert.equal(where("a { respond 200 }"), `1:3 ${brace}`);
  assert.equal(where("a {\n basic_auth {\n  alice X }\n}"), '3:11 "}" must be on a line of its own');
  assert.equal(where("(x) {\n}\na {\n import x }"), '4:11 "}" must be on a line of its own');
  assert.equal(where("a {\n import x {\n }\n}"), "2:11 import with a block is not converted");
  assert.equal(where("a {\n".repeat(40)), "33:3 more than 32 blocks in each other");
});

test("files are imported from below the folder of the file, and the command writes both forms", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tracegate-convert-"));
  try {
    mkdirSync(join(folder, "sites"));
    writeFileSync(join(folder, "sites", "a.caddy"), "http://a.example {\n\treverse_proxy app:80\n}\n");
    const file = join(folder, "Caddyfile");
    writeFileSync(file, "import sites/*.caddy\nimport ../x\n");
    const { stdout, stderr, code } = await invoke(["convert", "caddy", file]);
    assert.equal(code, 0);
    assert.match(stdout, /host: app:80/);
    assert.match(stderr, /:2:1: error: include \.\.\/x: not below the folder of the file/);
    const absent = await invoke(["convert", "caddy", join(folder, "absent")]);
    assert.match(absent.stderr, /cannot read .*absent: it does not exist/);
    assert.match(
      (await invoke(["convert", "caddy", file, "--to", "gateway-api"])).stdout,
      /backendRefs: \[ \{ name: app, port: 80 \} \]/,
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});
