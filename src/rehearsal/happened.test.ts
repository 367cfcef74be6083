import assert from "node:assert/strict";
import { test } from "node:test";
import { irOf } from "../../test/helpers/supervisor.ts";
import type { RequestRecord } from "../recorder/records.ts";
import { stepLines } from "../report/step-lines.ts";
import { explainHappened, type Happened } from "./happened.ts";
import { Rehearsal } from "./rehearsal.ts";

const KEY = new Uint8Array(32);
const SETTINGS = { sensitiveHeaders: [], perRequest: 1000, sessionKey: KEY, oidcCookieKey: KEY };
const BACKENDS = [{ host: "127.0.0.1:9" }];

/** What the gateway did: it let the request pass to the backend of the route, or refused it. */
const PASSED = { status: 200, attempts: 1, endpoint: "127.0.0.1:9", untilAnswer: 1 } as const;
const REFUSED = { status: 403, reason: "Authorization", error: "TG_AUTHORIZATION" } as const;
const BY_RULE = (rule: number) => ({ decider: { policy: "authorization", phase: "route", rule } });

async function explain(
  routes: readonly object[],
  fields: Partial<RequestRecord>,
  more: Omit<Happened, "record"> = {},
  frontendPolicies: object = {},
) {
  const named = routes.map((route, i) => ({ name: `r${i}`, backends: BACKENDS, ...route }));
  const rehearsal = new Rehearsal(
    irOf({ frontendPolicies, binds: [{ port: 80, listeners: [{ routes: named }] }] }),
    SETTINGS,
  );
  const [bind] = rehearsal.binds;
  const record: RequestRecord = {
    time: "2026-11-28T12:00:00.000Z",
    worker: 0,
    number: 1,
    generation: 1,
    ...{ method: "GET", host: "a.test", path: "/x", version: "HTTP/1.1", status: 0, reason: "Upstream" },
    ...{ duration: 2, received: 0, sent: 0, listener: "listener0", gateway: "default/default", route: "default/r0" },
    ...(bind !== undefined && { bind: bind.key }),
    ...(fields.attempts !== undefined && { backend: "/default/default/bind/80/listener0/default/r0/backend0" }),
    ...fields,
  };
  try {
    const { outcomes, omitted, question } = await explainHappened(
      rehearsal,
      { record, ...more },
      { [bind?.key ?? ""]: 8080 },
    );
    const [outcome] = outcomes;
    assert.ok(outcome !== undefined && outcomes.length === 1);
    return { ...outcome, omitted, question, lines: stepLines(outcome.steps) };
  } finally {
    rehearsal.close();
  }
}

const authorization = (...rules: readonly object[]) => [{ policies: { authorization: { rules } } }];
const GUEST = 'request.headers["x-role"] == "guest"';

test("what must have been so follows from what happened", async () => {
  const rules = authorization({ deny: GUEST }, { deny: 'request.path == "/x"' });
  const condition = `condition ${GUEST}`;
  const first = await explain(rules, { ...REFUSED, ...BY_RULE(0) });
  assert.deepEqual([first.given, first.unlike, first.needs], [{ [condition]: true }, undefined, undefined]);
  assert.match(
    first.lines.join("\n"),
    /\n✗ policy authorization {2}deny rules\[0\] is true {2}binds.*\n {4}\? rule deny /,
  );
  const second = await explain(rules, { ...REFUSED, ...BY_RULE(1) });
  assert.deepEqual([second.given, second.unlike], [{ [condition]: false }, undefined]);
  assert.match(second.lines.join("\n"), /\n✗ policy authorization {2}deny rules\[1\] is true /);
  assert.equal(second.lines.at(-1), "✗ response 403  by the gateway: authorization failed, after 2 ms");
});

test("a route that matches on a field or parameter which is not recorded", async () => {
  const path = { path: { pathPrefix: "/x" } };
  const routes = [
    { matches: [{ ...path, headers: [{ name: "x-canary", value: { exact: "yes" } }] }] },
    { matches: [{ ...path, query: [{ name: "v", value: { exact: "2" } }] }] },
    { matches: [path] },
  ];
  const canary = 'condition request.headers["x-canary"] == "yes"';
  const query = 'condition request.uri.query("v") == "<redacted 1>"';
  const at = (route: string) => ({ ...PASSED, route, backend: `/default/default/bind/80/listener0/${route}/backend0` });
  assert.deepEqual((await explain(routes, at("default/r0"))).given, { [canary]: true });
  assert.deepEqual((await explain(routes, at("default/r1"))).given, { [canary]: false, [query]: true });
  const last = await explain(routes, at("default/r2"));
  assert.deepEqual(last.given, { [canary]: false, [query]: false });
  assert.ok(last.lines.some((line) => /✗ route r0 {2}header x-canary: not known, and here not "yes"/.test(line)));
  // Supplied, they leave nothing open.
  const headers = [["x-canary", "no"]] as const;
  const supplied = await explain(routes, at("default/r1"), { request: { headers, query: "v=2" } });
  assert.deepEqual([supplied.given, supplied.unlike], [{}, undefined]);
  const wrong = await explain(routes, at("default/r0"), { request: { headers } });
  assert.equal(wrong.unlike, "route");
  assert.ok(
    wrong.lines.some((line) => /^✓ route default\/r0 {2}with what is known it would be default\/r1, so /.test(line)),
  );
});

test("an address that is not recorded was one that decided as it happened", async () => {
  const routes = [{ policies: { ipAccess: { deny: ["192.0.2.0/24"] } } }];
  const decider = { policy: "ipAccess", phase: "route" };
  const denied = { status: 403, reason: "Authorization", error: "TG_AUTHORIZATION", decider } as const;
  const refused = await explain(routes, denied);
  assert.deepEqual([Object.values(refused.given ?? {}), refused.unlike], [[false], undefined]);
  const passed = await explain(routes, PASSED);
  assert.deepEqual([Object.values(passed.given ?? {}), passed.unlike], [[true], undefined]);
  const known = await explain(routes, { ...denied, client: "192.0.2.7:50001" });
  assert.deepEqual([known.given, known.unlike], [{}, undefined]);
});

test("who the client of a trusted proxy was is not known from the address of the proxy", async () => {
  const routes = [{ policies: { ipAccess: { deny: ["192.0.2.0/24"] } } }];
  const behind = { http: { forwarded: { trustedProxies: ["10.0.0.0/8"] } } };
  const decider = { policy: "ipAccess", phase: "route" };
  const denied = { status: 403, reason: "Authorization", error: "TG_AUTHORIZATION", decider } as const;
  const client = "10.0.0.1:50001";
  const refused = await explain(routes, { ...denied, client }, {}, behind);
  assert.deepEqual([Object.values(refused.given ?? {}), refused.unlike], [[false], undefined]);
  const headers = [["x-forwarded-for", "192.0.2.7"]] as const;
  const supplied = await explain(routes, { ...denied, client }, { request: { headers } }, behind);
  assert.deepEqual([supplied.given, supplied.unlike], [{}, undefined]);
  const direct = await explain(routes, { ...denied, client: "192.0.2.7:50001" }, {}, behind);
  assert.deepEqual([direct.given, direct.unlike], [{}, undefined]);
});

test("credentials were valid, invalid or missing", async () => {
  const routes = [{ policies: { apiKey: { mode: "strict", keys: [{ key: "k" }] } } }];
  const decider = { policy: "apiKey", phase: "route" };
  const denied = (error: "TG_API_KEY" | "TG_API_KEY_MISSING") =>
    ({ status: 401, reason: "APIKeyAuth", error, decider: { ...decider, rule: 0 } }) as const;
  assert.deepEqual((await explain(routes, PASSED)).given, { apiKey: "valid" });
  assert.deepEqual((await explain(routes, denied("TG_API_KEY"))).given, { apiKey: "invalid" });
  assert.deepEqual((await explain(routes, denied("TG_API_KEY_MISSING"))).given, { apiKey: "missing" });
  const key = { request: { headers: [["authorization", "Bearer k"]] as const } };
  assert.deepEqual((await explain(routes, PASSED, key)).given, {});
});

test("what services said follows; what happened in several ways is not known, and can be supplied", async () => {
  const extAuthz = { host: "127.0.0.1:9", protocol: { http: {} } };
  const asked = [{ policies: { extAuthz } }];
  assert.deepEqual((await explain(asked, PASSED)).given, { extAuthz: "allow" });
  const optional = [{ policies: { apiKey: { mode: "optional", keys: [{ key: "k" }] } } }];
  const open = await explain(optional, PASSED);
  assert.deepEqual([open.given, open.unlike], [{}, undefined]);
  assert.ok(open.lines.some((line) => /^\? policy apiKey {2}the API key is valid, or no API key in /.test(line)));
  const either = await explain(authorization({ allow: GUEST }, { allow: 'request.headers["x-b"] == "1"' }), PASSED);
  assert.deepEqual(either.given, {});
  assert.deepEqual(either.needs?.map(({ what }) => what).sort(), ["the field x-b", "the field x-role"]);
});

test("time, client and body: what the record has of them is known", async () => {
  const year = authorization({ deny: "request.startTime.getFullYear() == 2026" });
  assert.deepEqual((await explain(year, { ...REFUSED, ...BY_RULE(0) })).given, {});
  const address = authorization({ deny: 'source.address == "192.0.2.7"' });
  const denied = { ...REFUSED, ...BY_RULE(0) };
  assert.equal(Object.keys((await explain(address, denied)).given).length, 1);
  assert.deepEqual((await explain(address, { ...denied, client: "192.0.2.7:50000" })).given, {});
  assert.deepEqual((await explain(address, { ...denied, client: "[2001:db8::1]:50000" })).unlike, "decision");
  assert.deepEqual((await explain(address, denied, { request: { source: "192.0.2.7" } })).given, {});
  const body = authorization({ deny: 'string(request.body) == "drop"' });
  const sent = { ...denied, method: "POST", received: 4 };
  assert.equal(Object.keys((await explain(body, sent)).given).length, 1);
  assert.equal((await explain(body, { ...sent, received: 0 })).unlike, "decision");
  assert.deepEqual((await explain(body, sent, { request: { body: "drop" } })).given, {});
});

test("where a request came from follows from what csrf and cors have done", async () => {
  const csrf = [{ policies: { csrf: {} } }];
  const decider = { policy: "csrf", phase: "route" };
  const posted = { method: "POST", status: 403, reason: "Authorization", error: "TG_CSRF", decider } as const;
  const foreign = await explain(csrf, posted);
  assert.deepEqual([foreign.given, foreign.unlike], [{ "condition csrf trusts the origin": false }, undefined]);
  const trusted = await explain(csrf, { ...PASSED, method: "POST" });
  assert.deepEqual([trusted.given, trusted.unlike], [{ "condition csrf trusts the origin": true }, undefined]);
  const supplied = await explain(csrf, posted, { request: { headers: [["origin", "https://evil.test"]] } });
  assert.deepEqual([supplied.given, supplied.unlike], [{}, undefined]);
  assert.ok(supplied.lines.some((line) => line.startsWith("✗ policy csrf  the origin https://evil.test is not in ")));

  const cors = [{ policies: { cors: { allowOrigins: ["https://shop.test"] } } }];
  const options = { method: "OPTIONS", status: 200 } as const;
  const by = { reason: "DirectResponse", decider: { policy: "cors", phase: "route" } } as const;
  const preflight = await explain(cors, { ...options, ...by });
  const hasOrigin = 'condition "origin" in request.headers';
  assert.deepEqual([preflight.given, preflight.unlike], [{ [hasOrigin]: true }, undefined]);
  const other = await explain(cors, { ...PASSED, ...options });
  assert.deepEqual([other.given, other.unlike], [{ [hasOrigin]: false }, undefined]);
  // Other responses get fields only, which are not recorded.
  assert.deepEqual((await explain(cors, PASSED)).given, {});
});

test("a record that a rehearsal contradicts wins", async () => {
  const csrf = [{ policies: { csrf: {}, authorization: { rules: [{ deny: "false" }] } } }];
  const decider = { policy: "csrf", phase: "route", rule: 0 };
  const posted = { method: "POST", status: 403, reason: "Authorization", error: "TG_CSRF", decider } as const;
  const failed = await explain(csrf, posted, { request: { headers: [["sec-fetch-site", "same-origin"]] } });
  assert.equal(failed.unlike, "decision");
  assert.ok(
    failed.lines.some((line) =>
      /^✗ policy csrf {2}CSRF validation failed; of the route; with what is known it would pass, so something decided that is not known/.test(
        line,
      ),
    ),
  );
  const denied = await explain(authorization({ deny: "true" }), PASSED);
  assert.equal(denied.unlike, "decision");
  const text = denied.lines.join("\n");
  assert.match(
    text,
    /\n✓ policy authorization {2}passed; with what is known it would not \(deny rules\[0\] is true\), so/,
  );
  assert.match(text, /\n✓ endpoint 127\.0\.0\.1:9 .*\n✓ response 200 {2}by the backend, after 2 ms$/);
});

test("a response that a policy makes", async () => {
  const direct = [{ policies: { directResponse: { status: 204 } }, backends: [] }];
  const decider = { policy: "directResponse", phase: "route" };
  const { lines, unlike } = await explain(direct, { status: 204, reason: "DirectResponse", decider });
  assert.equal(unlike, undefined);
  assert.equal(lines.filter((line) => line.startsWith("✓ policy directResponse")).length, 1);
  assert.equal(lines.at(-1), "✓ response 204  by the gateway, after 2 ms");
});

test("a service that denied, and a body whose content is not known", async () => {
  const extProc = [{ policies: { extProc: { host: "127.0.0.1:9" } } }];
  const decider = { policy: "extProc", phase: "route" };
  const denied = { status: 401, reason: "ExtProc", error: "TG_EXT_PROC_DENIED", decider } as const;
  const service = await explain(extProc, denied);
  assert.deepEqual([service.unlike, service.given], [undefined, {}]);
  const buffer = [{ policies: { buffer: { request: { maxBytes: 2 } } } }];
  const large = {
    method: "POST",
    status: 413,
    reason: "InvalidRequest",
    error: "TG_BODY_TOO_LARGE",
    received: 3,
  } as const;
  assert.equal((await explain(buffer, { ...large, decider: { policy: "buffer", phase: "route" } })).unlike, undefined);
});

test("of other things than requests, and of paths that are cut, there is only the record", async () => {
  const routes = authorization({ deny: "true" });
  for (const other of [
    { kind: "connection" },
    { cut: true },
    { method: "CONNECT" },
    { bind: "gone" },
    { host: "::" },
  ] as const) {
    const { lines, unlike } = await explain(routes, { ...PASSED, ...other });
    assert.equal(unlike, undefined);
    assert.ok(lines.includes("✓ route default/r0"), JSON.stringify(other));
  }
});

test("the question what would happen to such a request: what matters is open, what services said is assumed", async () => {
  const extAuthz = { host: "127.0.0.1:9", protocol: { http: {} } };
  const [{ policies }] = authorization({ allow: GUEST }) as [{ policies: object }];
  const query = [{ name: "page", value: { exact: "2" } }];
  const routes = [
    { matches: [{ path: { pathPrefix: "/x" }, query }], policies: { ...policies, extAuthz } },
    { matches: [{ path: { pathPrefix: "/" } }] },
  ];
  const { question } = await explain(routes, {
    ...PASSED,
    method: "PUT",
    version: "HTTP/2",
    client: "192.0.2.7:50001",
    received: 3,
  });
  assert.deepEqual(JSON.parse(JSON.stringify(question)), {
    request: {
      url: "http://a.test:8080/x?page=<redacted>",
      method: "PUT",
      headers: [
        ["content-length", "3"],
        ["x-role", "<redacted>"],
      ],
      body: "",
      source: "192.0.2.7",
      version: "2",
    },
    assume: { extAuthz: "allow" },
  });
  // What was supplied is as it is; a credential that was missing is not assumed.
  const keys = [{ policies: { apiKey: { mode: "strict", keys: [{ key: "k" }] } } }];
  const denied = { status: 401, reason: "APIKeyAuth", error: "TG_API_KEY_MISSING" } as const;
  const decider = { policy: "apiKey", phase: "route", rule: 0 };
  const supplied = { request: { headers: [["x-a", "1"]] as const, query: "v=2" } };
  const { question: other } = await explain(keys, { ...denied, decider }, supplied);
  assert.deepEqual(
    [other?.request.url, other?.request.headers, other?.assume],
    ["http://a.test:8080/x?v=2", [["x-a", "1"]], {}],
  );
  // A query may have question marks.
  const asking = { request: { query: "next=/a?b=1" } };
  const { question: both } = await explain(routes, PASSED, asking);
  assert.equal(both?.request.url, "http://a.test:8080/x?next=/a?b=1&page=<redacted>");
  assert.equal((await explain(keys, { ...PASSED, method: "CONNECT" })).question, undefined, "not a whole request");
});
