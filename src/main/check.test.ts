import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { stringify } from "yaml";
import { appRoot } from "../base/app-root.ts";
import { invokeProgram } from "../cli/fixtures/invoke.ts";
import { loadConfig } from "../config/load.ts";
import type { SampledRequest } from "../recorder/sample.ts";
import { type SampledConfiguration, sampleFileText } from "../recorder/sample-file.ts";
import { sensitiveHeaders } from "../trace/redaction.ts";
import { tracegate } from "./commands.ts";
import { fingerprintOf } from "./fingerprint.ts";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "tracegate-check-"));
});
after(() => rm(folder, { recursive: true }));

const SECRET = "a-secret-value";
const BACKEND = { host: "127.0.0.1:9099" };
const extAuthz = { host: "127.0.0.1:9000", protocol: { http: {} } };
const ROUTES = [
  {
    name: "all",
    policies: {
      requestHeaderModifier: { set: { "x-team": "shop", authorization: SECRET } },
      responseHeaderModifier: { set: { "x-served": "yes" } },
    },
    backends: [BACKEND],
  },
  {
    name: "admin",
    matches: [{ path: { pathPrefix: "/admin" } }],
    policies: { authorization: { rules: [{ require: 'request.headers["x-user"] == "admin"' }] } },
    backends: [BACKEND],
  },
  {
    name: "asks",
    matches: [{ path: { pathPrefix: "/asks" } }],
    policies: { extAuthz },
    backends: [BACKEND],
  },
];

/** `cases` as text keeps the places of its problems. */
async function check(cases: readonly object[] | string, ...args: readonly string[]) {
  const file = join(folder, "gateway.yaml");
  const expected = join(folder, "cases.yaml");
  await writeFile(file, stringify({ binds: [{ port: 8080, listeners: [{ name: "web", routes: ROUTES }] }] }));
  await writeFile(expected, typeof cases === "string" ? cases : stringify({ cases }));
  const outcome = await invokeProgram(tracegate, ["check", "-f", file, "--expect", expected, ...args]);
  assert.equal(outcome.stderr, "");
  if (args.includes("json")) assertFits(outcome.stdout);
  return { ...outcome, stdout: outcome.stdout.replaceAll(`${folder}/`, "") };
}

const fits = new Ajv2020({ strict: false }).compile(JSON.parse(readFileSync(`${appRoot}schema/check.json`, "utf8")));

/** The output is JSON as its schema says. */
function assertFits(stdout: string): void {
  assert.ok(fits(JSON.parse(stdout)), JSON.stringify(fits.errors));
}

const request = (path: string, headers: Readonly<Record<string, string>> = {}): object => ({
  url: `http://shop.test:8080${path}`,
  headers,
});

test("cases that turn out as expected: every field that a case can name", async () => {
  const { code, stdout } = await check([
    {
      name: "forwarded",
      request: { ...request("/a?b=c"), method: "PUT", body: "text", source: "192.0.2.7" },
      expect: {
        listener: "web",
        route: "all",
        backend: "127.0.0.1:9099",
        status: 200,
        code: null,
        sent: { path: "/a?b=c", headers: { "X-Team": "shop", authorization: SECRET, "x-forwarded-for": "192.0.2.7" } },
        headers: { "X-Served": "yes", "x-team": null },
      },
    },
    {
      name: "named by longer parts of keys",
      request: request("/a"),
      expect: { route: "default/all", backend: "all/backend0" },
    },
    {
      name: "refused",
      request: request("/admin"),
      expect: { route: "admin", backend: null, status: 403, code: "TG_AUTHORIZATION", sent: null },
    },
    { name: "not valid for HTTP", request: request("/a/../b"), expect: { status: 400, route: null, listener: null } },
    {
      name: "the backend fails",
      request: request("/a"),
      assume: { response: 503 },
      expect: { status: 503, code: null },
    },
  ]);
  assert.equal(
    stdout,
    [
      "valid: 1 bind, 1 listener, 3 routes, 3 backends",
      "✓ forwarded",
      "✓ named by longer parts of keys",
      "✓ refused",
      "✓ not valid for HTTP",
      "✓ the backend fails",
      "5 cases: 5 passed",
      "",
    ].join("\n"),
  );
  assert.equal(code, 0);
});

test("a difference: what was expected, what came, and what decided; secrets are not shown", async () => {
  const { code, stdout } = await check([
    { name: "admins only", request: request("/admin", { "x-user": "joe" }), expect: { status: 200 } },
    { name: "another route", request: request("/a"), expect: { route: "admin", sent: { path: "/b" } } },
    {
      name: "a secret",
      request: request("/a"),
      expect: { listener: null, backend: null, sent: { headers: { authorization: null, "x-team": "x" } } },
    },
  ]);
  assert.equal(code, 1);
  assert.ok(!stdout.includes(SECRET));
  assert.equal(
    stdout,
    `valid: 1 bind, 1 listener, 3 routes, 3 backends
✗ admins only  cases.yaml:2:5
    status: expected 200, got 403
    ✗ policy authorization  require rules[0] is not true  gateway.yaml:23
        ✗ rule require request.headers["x-user"] == "admin" → false  gateway.yaml:25
            request.headers["x-user"] → "joe"
✗ another route  cases.yaml:9:5
    route: expected "admin", got "all"
    sent.path: expected "/b", got "/a"
    ✓ route all  the only route that matches  gateway.yaml:6
        ✗ route admin  path: /a is not under prefix /admin  gateway.yaml:18
        ✗ route asks  path: /a is not under prefix /asks  gateway.yaml:28
✗ a secret  cases.yaml:17:5
    listener: expected none, got "web"
    backend: expected none, got "127.0.0.1:9099"
    sent.headers.authorization: expected none, got "<redacted>"
    sent.headers.x-team: expected "x", got "shop"
    ✓ route all  the only route that matches  gateway.yaml:6
        ✗ route admin  path: /a is not under prefix /admin  gateway.yaml:18
        ✗ route asks  path: /a is not under prefix /asks  gateway.yaml:28
3 cases: 0 passed, 3 failed
`,
  );
});

test("what is not known: outcomes that agree pass, others say what to assume", async () => {
  const { code, stdout } = await check([
    { name: "agree", request: request("/asks"), expect: { route: "asks" } },
    { name: "differ", request: request("/asks"), expect: { status: 200 } },
    { name: "assumed", request: request("/asks"), assume: { extAuthz: "deny" }, expect: { status: 403 } },
    { name: "agree in what is wrong", request: request("/asks"), expect: { route: "all" } },
    { name: "assumed in vain", request: request("/a"), assume: { extAuthz: "deny" }, expect: { status: 200 } },
    { name: "no such port", request: { url: "http://shop.test:1/" }, expect: { status: 200 } },
    { name: "redacted", request: request("/admin", { "x-user": "<redacted>" }), expect: { status: 200 } },
  ]);
  assert.equal(code, 1);
  const lines = stdout.split("\n").map((line) => line.trim());
  const after = (name: string): string[] => {
    const start = lines.findIndex((line) => line.startsWith(`✗ ${name}  `));
    return lines.slice(start + 1, start + 4);
  };
  assert.ok(lines.includes("✓ agree") && lines.includes("✓ assumed"));
  const [unknown = "", condition, difference] = after("differ");
  assert.match(unknown, /^it depends on extAuthz, so write assume: \{extAuthz: allow\} or \{extAuthz: deny\} or /);
  assert.deepEqual([condition, difference], ["if extAuthz=deny:", "status: expected 200, got 403"]);
  assert.match(after("agree in what is wrong")[0] ?? "", /^route: expected "all", got /);
  assert.equal(
    after("assumed in vain")[0],
    "nothing depends on the assumption extAuthz; leave it out, or check which route the request gets",
  );
  assert.ok(lines.includes("✗ assumed in vain  cases.yaml:33:7"), stdout);
  assert.match(after("no such port")[0] ?? "", /no bind for http on port 1; write http:\/\/shop\.test:8080$/);
  assert.equal(
    after("redacted")[0],
    "it depends on what is not known: the field x-user; write request: {headers: {x-user: …}}",
  );
  assert.equal(lines.at(-2), "7 cases: 2 passed, 5 failed");
});

test("a case with too many outcomes to try them all has a result, and says what to assume", async () => {
  const backends = Array.from({ length: 20 }, (_, i) => ({ host: `127.0.0.1:${9100 + i}` }));
  const file = join(folder, "many.yaml");
  const expected = join(folder, "many-cases.yaml");
  await writeFile(
    file,
    stringify({ gateways: { default: { port: 8080 } }, routes: [{ name: "many", policies: { extAuthz }, backends }] }),
  );
  const assume = { backend: "127.0.0.1:9100" };
  const cases = [
    { name: "as far as tried", request: request("/"), expect: { route: "many" } },
    { name: "some differ", request: request("/"), expect: { backend: "127.0.0.1:9100" } },
    { name: "assumed", request: request("/"), assume, expect: { route: "many" } },
  ];
  await writeFile(expected, stringify({ cases }));
  const { stdout, code } = await invokeProgram(tracegate, ["check", "-f", file, "--expect", expected]);
  assert.equal(code, 1);
  const [first = "", second = ""] = stdout.split(/^✗ /m).slice(1);
  assert.match(first, /^as far as tried /);
  assert.match(first, /^ {4}it has too many outcomes to try them all; those that were tried are as expected$/m);
  assert.match(first, /^ {4}it depends on backend, so write assume: \{backend: 127\.0\.0\.1:9100\} or /m);
  assert.match(first, /^ {4}it depends on extAuthz, so write assume: \{extAuthz: allow\} or /m);
  assert.match(second, /^some differ /);
  assert.match(second, /^ {8}backend: expected "127\.0\.0\.1:9100", got /m);
  assert.match(stdout, /^✓ assumed$/m);
  const json = await invokeProgram(tracegate, ["check", "-f", file, "--expect", expected, "-o", "json"]);
  assertFits(json.stdout);
  const [result] = JSON.parse(json.stdout).cases;
  assert.deepEqual([result.ok, result.failures, Object.keys(result.open)], [false, [], ["backend", "extAuthz"]]);
});

test("JUnit's XML and JSON have the same results", async () => {
  const cases = [
    { name: "passes", request: request("/a"), expect: { status: 200 } },
    { name: 'a "name" & <more>', request: request("/admin", { "x-user": "joe" }), expect: { status: 200 } },
  ];
  const junit = await check(cases, "-o", "junit");
  assert.equal(junit.code, 1);
  const text = junit.stdout.replaceAll(/time="\d+\.\d{3}"/g, 'time="T"');
  const suite = `name="cases.yaml" tests="2" failures="1" errors="0" skipped="0" time="T"`;
  assert.equal(
    text,
    `<?xml version="1.0" encoding="UTF-8"?>
<testsuites ${suite}>
  <testsuite ${suite}>
    <testcase name="passes" classname="cases.yaml" file="cases.yaml" line="2" time="T"/>
    <testcase name="a &quot;name&quot; &amp; &lt;more&gt;" classname="cases.yaml" file="cases.yaml" line="8" time="T">
      <failure message="status: expected 200, got 403">status: expected 200, got 403
✗ policy authorization  require rules[0] is not true  gateway.yaml:23
    ✗ rule require request.headers[&quot;x-user&quot;] == &quot;admin&quot; → false  gateway.yaml:25
        request.headers[&quot;x-user&quot;] → &quot;joe&quot;</failure>
    </testcase>
  </testsuite>
</testsuites>
`,
  );
  const { code, stdout } = await check(cases, "-o", "json");
  const { ok, cases: results } = JSON.parse(stdout);
  assert.deepEqual([code, ok], [1, false]);
  assert.deepEqual(
    results.map(({ name, line, ok }: Record<string, unknown>) => [name, line, ok]),
    [
      ["passes", 2, true],
      ['a "name" & <more>', 8, false],
    ],
  );
  const [difference] = results[1].failures[0].differences;
  assert.deepEqual(difference, { field: "status", expected: 200, actual: 403 });
});

const CASE = `cases:
  - name: one
    request: {url: "http://a:8080/"}
    expect: {status: 200}
`;
const MISTAKES: readonly (readonly [what: string, text: string, ...problems: readonly RegExp[]])[] = [
  ["no cases", "cases: []\n", /^cases\.yaml:1:8: error: cases: must not be empty$/],
  [
    "an unknown field",
    CASE.replace("status", "statu"),
    /^cases\.yaml:4:14: error: cases\[0\]\.expect\.statu: unknown field; did you mean "status"\?$/,
  ],
  [
    "a wrong type",
    CASE.replace("200", '"200"'),
    /^cases\.yaml:4:22: error: cases\[0\]\.expect\.status: is a string; expected a number without quotes$/,
  ],
  [
    "nothing expected",
    CASE.replace("status: 200", ""),
    /^cases\.yaml:4:13: error: cases\[0\]\.expect: expects nothing; write what should happen, such as status: 200$/,
  ],
  [
    "not a code",
    CASE.replace("status: 200", "code: TG_ROUTE_MISSING"),
    /^cases\.yaml:4:20: error: cases\[0\]\.expect\.code: not a known value/,
  ],
  [
    "not a URL",
    CASE.replace("http://a:8080/", "ftp://a/"),
    /^cases\.yaml:3:20: error: cases\[0\]\.request\.url: the scheme ftp cannot be explained; write a URL that begins with /,
  ],
  [
    "a route that is not there",
    CASE.replace("status: 200", "route: admins"),
    /^cases\.yaml:4:21: error: cases\[0\]\.expect\.route: the configuration has no route "admins"; did you mean "admin"\?$/,
  ],
  [
    "a listener that is not there",
    CASE.replace("status: 200", "listener: x"),
    /the configuration has no listener "x"; expected null, or a listener such as web$/,
  ],
  [
    "an assumption that does not exist",
    `${CASE}    assume: {response: 99}\n`,
    /^cases\.yaml:5:24: error: cases\[0\]\.assume\.response: response cannot be "99"; write response: 503 or response: \{"status"/,
  ],
  [
    "assumptions of which several are wrong",
    `${CASE}    assume:\n      respons: 503\n      extAuthz@here: deny\n`,
    /^cases\.yaml:6:16: error: cases\[0\]\.assume\.respons: nothing can be assumed about "respons"; write response$/,
    /^cases\.yaml:7:22: error: cases\[0\]\.assume\["extAuthz@here"\]: nothing can be assumed about "extAuthz@here"; write extAuthz or extAuthz@gateway /,
  ],
  [
    "assumptions that are no object",
    `${CASE}    assume: deny\n`,
    /^cases\.yaml:5:13: error: cases\[0\]\.assume: is a string; expected an object$/,
  ],
  [
    "a field of the request that does not exist",
    CASE.replace("url:", "header: {}, url:"),
    /^cases\.yaml:3:15: error: cases\[0\]\.request\.header: unknown field; did you mean "headers"\?$/,
  ],
  [
    "a header that is a number",
    CASE.replace('"}', '", headers: {x-id: 7}}'),
    /^cases\.yaml:3:54: error: cases\[0\]\.request\.headers\.x-id: is 7; expected a string in quotes$/,
  ],
  [
    "no request",
    "cases: [{name: one, expect: {status: 200}}]\n",
    /^cases\.yaml:1:9: error: cases\[0\]\.request: is required; expected an object with fields such as method, url, /,
  ],
  [
    "a client that is not an address",
    CASE.replace('"}', '", source: here}'),
    /^cases\.yaml:3:46: error: cases\[0\]\.request\.source: here is not an IP address; write an address such as 192\.0\.2\.7$/,
  ],
  [
    "a name twice",
    `${CASE}${CASE.split("\n").slice(1).join("\n")}`,
    /^cases\.yaml:5:11: error: cases\[1\]\.name: another case has this name/,
  ],
  ["not YAML", "cases: [\n", /^cases\.yaml:\d+:\d+: error: not valid YAML/],
];

for (const [what, text, ...problems] of MISTAKES)
  test(`bad input: ${what}`, async () => {
    const { code, stdout } = await check(text);
    assert.equal(code, 1);
    const lines = stdout.split("\n");
    for (const problem of problems)
      assert.ok(
        lines.some((line) => problem.test(line)),
        stdout,
      );
    assert.match(lines.at(-2) ?? "", /^\d+ problems?$/);
    await check(text, "-o", "json");
  });

test("an expectation that no request can meet is a mistake of the file", async () => {
  const file = join(folder, "hosts.yaml");
  const expected = join(folder, "unmet.yaml");
  const route = (name: string, path: string, hostnames: readonly string[] = []) => {
    return { name, hostnames, matches: [{ path: { pathPrefix: path } }], backends: [BACKEND] };
  };
  await writeFile(
    file,
    stringify({
      binds: [
        {
          port: 8080,
          listeners: [
            {
              name: "shop",
              hostname: "*.shop.test",
              routes: [route("a", "/"), route("b", "/"), route("c", "/c", ["c.shop.test"])],
            },
            { name: "other", routes: [route("d", "/")] },
          ],
        },
      ],
    }),
  );
  const outcomesOf = async (expect: object, host: string, headers = {}) => {
    const url = `http://${host}:8080/`;
    await writeFile(expected, stringify({ cases: [{ name: "one", request: { url, headers }, expect }] }));
    const { stdout } = await invokeProgram(tracegate, ["check", "-f", file, "--expect", expected]);
    return stdout;
  };
  for (const [expect, host, problem] of [
    [{ route: "b" }, "x.shop.test", "expect.route: no such request gets this route: never wins: a takes precedence"],
    [
      { route: "c" },
      "x.shop.test",
      "expect.route: no such request gets this route: it is for c.shop.test only, not x.shop.test",
    ],
    [{ route: "a" }, "a.test", "expect.route: no such request gets this route: it is for *.shop.test only, not a.test"],
    [
      { listener: "shop" },
      "a.test",
      "expect.listener: no such request gets this listener: it takes *.shop.test only, not a.test",
    ],
  ] as const) {
    const stdout = await outcomesOf(expect, host);
    assert.ok(stdout.includes(`cases[0].${problem}`), stdout);
    assert.match(stdout, /unmet\.yaml:\d+:\d+: error: /);
  }
  for (const [expect, host] of [
    [{ route: "a", listener: "shop" }, "x.shop.test"],
    [{ route: "d", listener: "other" }, "a.test"],
  ] as const)
    assert.match(await outcomesOf(expect, host), /1 case: 1 passed/);
  // Not what the case asks for, but another request could.
  assert.match(await outcomesOf({ route: "c" }, "c.shop.test"), /1 failed/);
  assert.match(await outcomesOf({ route: "a" }, "127.0.0.1", { Host: "x.shop.test" }), /1 passed/);
});

/** Two warnings, of which the second has a place that explains it. */
const ODD = `binds:
  - port: 8080
    listeners:
      - routes:
          - name: b
            matches: [{ method: get }]
            backends: [{ host: 127.0.0.1:9099 }]
          - name: a
            matches: [{ method: get }]
            backends: [{ host: 127.0.0.1:9099 }]
`;

test("--strict makes warnings errors; findings have codes, as annotations and as JSON too", async () => {
  const file = join(folder, "odd.yaml");
  await writeFile(file, ODD);
  const run = async (...args: readonly string[]) => {
    const { code, stdout } = await invokeProgram(tracegate, ["check", "-f", file, ...args]);
    return { code, stdout: stdout.replaceAll(`${folder}/`, "") };
  };
  const lax = await run();
  assert.equal(lax.code, 0);
  assert.match(lax.stdout, /^odd\.yaml:6:33: warning: .*methods are case-sensitive; write GET \[lower-case-method\]$/m);
  assert.match(lax.stdout, /^valid: /m);
  const strict = await run("--strict");
  assert.equal(strict.code, 1);
  assert.match(strict.stdout, /^odd\.yaml:6:33: error: /m);
  assert.match(strict.stdout, /^3 problems$/m);
  const github = await run("--strict", "-o", "github");
  assert.equal(github.code, 1);
  const lines = github.stdout.trimEnd().split("\n");
  assert.equal(lines.length, 3);
  assert.match(
    lines[0] ?? "",
    /^::error file=odd\.yaml,line=5,col=13,title=shadowed-route::binds\[0\]\.listeners\[0\]\.routes\[0\]: never wins: a takes precedence/,
  );
  assert.match((await run("-o", "github")).stdout, /^::warning file=odd\.yaml,/);
  const json = (await run("-o", "json", "--strict")).stdout;
  assertFits(json);
  const { ok, diagnostics } = JSON.parse(json);
  assert.equal(ok, false);
  const [shadowed] = diagnostics;
  assert.deepEqual(
    [shadowed.lint, shadowed.severity, shadowed.line, shadowed.column, shadowed.remedy],
    ["shadowed-route", "error", 5, 13, "remove it, or change the matches of one of them"],
  );
});

test("annotations of cases: the place of the case, and what differs in one line", async () => {
  const failing = await check(CASE.replace("200", "404"), "-o", "github");
  assert.equal(failing.code, 1);
  assert.match(
    failing.stdout,
    /^::error file=cases\.yaml,line=2,col=5,title=one::status: expected 404, got 200%0A✓ route all/,
  );
  const bad = await check(CASE.replace("status", "statu"), "-o", "github");
  assert.match(bad.stdout, /^::error file=cases\.yaml,line=4,col=14,title=configuration::/);
});

test("a file that cannot be read, and -o junit without cases, are mistakes of the command line", async () => {
  const file = join(folder, "gateway.yaml");
  await check(CASE);
  const absent = await invokeProgram(tracegate, ["check", "-f", file, "--expect", join(folder, "absent.yaml")]);
  assert.equal(absent.code, 1);
  assert.match(absent.stderr, /cannot read .*absent\.yaml: it does not exist/);
  const junit = await invokeProgram(tracegate, ["check", "-f", file, "-o", "junit"]);
  assert.equal(junit.code, 2);
  assert.match(junit.stderr, /-o junit reports on cases/);
});

const SAMPLED: SampledRequest = {
  time: "2026-11-28T12:00:00.000Z",
  weight: 40,
  bind: "bind/8080",
  scheme: "http",
  version: "1.1",
  method: "GET",
  authority: "shop.example",
  target: "/items",
  headers: [],
  source: { address: "192.0.2.7", port: 40_000 },
};

function configurationOf(text: string): SampledConfiguration {
  const loaded = loadConfig({ kind: "text", text }, {});
  assert.ok(loaded.ok);
  return fingerprintOf(loaded.ir, sensitiveHeaders(loaded.config.sensitiveHeaders));
}

/** What the change of the route `all` to these policies and this backend does to sampled requests. */
async function impact(route: object, samples: readonly Partial<SampledRequest>[], ...args: readonly string[]) {
  return await impactTakenWith(undefined, route, samples, ...args);
}

/** The same, with samples of a gateway that had another configuration. */
async function impactTakenWith(
  taken: string | undefined,
  route: object,
  samples: readonly Partial<SampledRequest>[],
  ...args: readonly string[]
) {
  const [old, changed, sampled] = ["old.yaml", "new.yaml", "samples.jsonl"].map((name) => join(folder, name));
  assert.ok(old !== undefined && changed !== undefined && sampled !== undefined);
  const [first, ...others] = ROUTES;
  const write = (file: string, routes: readonly object[]): Promise<void> =>
    writeFile(file, stringify({ binds: [{ port: 8080, listeners: [{ name: "web", routes }] }] }));
  await write(old, ROUTES);
  await write(changed, [{ ...first, ...route }, ...others]);
  await writeFile(
    sampled,
    sampleFileText(
      samples.map((each) => ({ ...SAMPLED, ...each })),
      { generation: 1, configuration: configurationOf(taken ?? (await readFile(old, "utf8"))) },
    ),
  );
  const command = ["check", "-f", changed, "--before", old, "--impact", sampled, ...args];
  const outcome = await invokeProgram(tracegate, command);
  if (args.includes("json")) assertFits(outcome.stdout);
  return { ...outcome, stdout: outcome.stdout.replaceAll(`${folder}/`, "") };
}

test("--impact says what a change would do to sampled requests; --fail-on makes it an error", async () => {
  const policies = { authorization: { rules: [{ deny: 'request.path == "/secret"' }] } };
  const samples = [{}, { target: "/secret?page=1", weight: 2 }, { target: "/admin" }];
  const { code, stdout, stderr } = await impact({ policies, backends: [{ host: "127.0.0.1:9100" }] }, samples);
  assert.equal(stderr, "");
  assert.equal(code, 0);
  assert.equal(
    stdout,
    `valid: 1 bind, 1 listener, 3 routes, 3 backends
Of ≈ 82 requests (3 samples)
≈ 21 are refused with 403 by authorization at new.yaml:10 on the route default/all (25.6 %, 1 sample)
       GET shop.example/secret?page=1
≈ 21 go to 127.0.0.1:9100 instead of 127.0.0.1:9099 on the route default/all (25.6 %, 1 sample)
       GET shop.example/items
≈ 40 do not change (48.8 %, 1 sample)
`,
  );
  const failing = async (...words: readonly string[]): Promise<number> =>
    (await impact({ policies }, samples, "--fail-on", ...words)).code;
  assert.equal(await failing("refused"), 1);
  assert.equal(await failing("granted,moved"), 0);
  const json = await impact({ policies }, samples, "-o", "json", "--fail-on", "refused");
  assert.equal(json.code, 1);
  assert.deepEqual(JSON.parse(json.stdout).impact.classes.refused, { requests: 21, samples: 1 });
});

test("--impact warns of samples that were taken with another configuration than that of --before", async () => {
  const site = (...routes: readonly object[]): string =>
    stringify({ binds: [{ port: 8080, listeners: [{ name: "web", routes }] }] });
  const [first, ...others] = ROUTES;
  const warned = async (taken: string, ...args: readonly string[]) => {
    const { code, stdout, stderr } = await impactTakenWith(taken, {}, [{}], ...args);
    assert.equal(stderr, "");
    return { code, stdout };
  };
  const same = await warned(site(...ROUTES));
  assert.match(same.stdout, /^valid: /);
  const renamed = await warned(site({ ...first, name: "shop" }, ...others));
  assert.equal(renamed.code, 0);
  assert.match(
    renamed.stdout,
    /^samples\.jsonl: warning: old\.yaml is not the configuration with which these samples were taken: it lacks the routes default\/shop, it has more routes: default\/all; name the file that was in effect by --before, or ask the gateway itself: --impact http:\/\/localhost:15000\n/,
  );
  assert.match(renamed.stdout, /do not change/);
  const changed = site({ ...first, backends: [{ host: "127.0.0.1:9200" }] }, ...others);
  const strict = await warned(changed, "--strict");
  assert.equal(strict.code, 1);
  assert.match(strict.stdout, /error: .*its routes have the same names, and something else differs;/);
  const { diagnostics } = JSON.parse((await warned(changed, "-o", "json")).stdout);
  assert.deepEqual(
    diagnostics.map(({ severity, message }: { severity: string; message: string }) => [
      severity,
      /not the configuration/.test(message),
    ]),
    [["warning", true]],
  );
});

test("--impact without what it needs says so", async () => {
  const noBefore = await invokeProgram(tracegate, ["check", "-f", "new.yaml", "--impact", "samples.jsonl"]);
  assert.equal(noBefore.code, 2);
  assert.match(noBefore.stderr, /a file of samples needs the configuration --before/);
  const unknown = await impact({}, [{}], "--fail-on", "refusd");
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /--fail-on refusd: no such change\nTry: one of refused, maybeRefused, /);
});
