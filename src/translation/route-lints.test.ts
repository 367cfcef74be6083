import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/helpers/property.ts";
import type { Route, RouteBackend, RouteMatch, TcpRoute } from "../ir/ir.ts";
import { matchOn, requestTo, routeOf, routerOf } from "../proxy/match/fixtures/routes.ts";
import { lintedRoute } from "./linted-route.ts";
import { lintRoutes } from "./route-lints.ts";

/** As of one listener. */
function lint(routes: readonly (Route | TcpRoute)[], hostname = "", policies: Route["policies"] = {}) {
  const linted = routes.map((route) => lintedRoute(route, hostname));
  const findings = lintRoutes(policies, linted, ({ route, match }, loser) =>
    route === loser ? `matches[${match}]` : route.name,
  );
  // Most routes here have none.
  return findings.filter(({ code }) => code !== "no-backends");
}

/** `code route[match]`, with what was found. */
function found(routes: readonly (Route | TcpRoute)[], hostname?: string): string[] {
  return lint(routes, hostname).map(
    ({ code, route, match, found: [first] }) =>
      `${code} ${route.key}${match === undefined ? "" : `[${match}]`}: ${[first].flat().join(" ")}`,
  );
}

const header = (name: string, value: string): RouteMatch["headers"][number] => ({ name, type: "exact", value });
const on = (port: number): RouteBackend => ({
  key: `/${port}`,
  weight: 1,
  target: { type: "static", host: "127.0.0.1", port },
  policies: {},
});
const BASIC = { basicAuth: { mode: "strict", realm: "r", htpasswd: "" } } as unknown as Route["policies"];
const EITHER = { satisfy: [{ any: [BASIC, BASIC] }] } as unknown as Route["policies"];
const secured = (route: Route, port = 1): Route => ({ ...route, policies: BASIC, backends: [on(port)] });
const open = (route: Route, port = 1): Route => ({ ...route, backends: [on(port)] });

test("routes and matches that others keep from all requests", () => {
  // Equal, whatever the order of conditions and slashes at the end.
  const two = [header("a", "1"), header("b", "2")];
  const equal = [
    routeOf("a", [], matchOn("/x/", { headers: two })),
    routeOf("b", [], matchOn("/x", { headers: [...two].reverse() })),
  ];
  assert.deepEqual(found(equal), ["shadowed-route b: a"]);
  // One match of two; and a match that is written twice.
  assert.deepEqual(found([routeOf("a", [], "/x"), routeOf("b", [], "/x", "/y")]), ["unreachable-match b[0]: a"]);
  assert.deepEqual(found([routeOf("a", [], "/x", "/x")]), ["unreachable-match a[1]: matches[0]"]);
  // By several routes together.
  assert.deepEqual(found([routeOf("a", [], "/x"), routeOf("b", [], "/y"), routeOf("c", [], "/x", "/y")]), [
    "shadowed-route c: a b",
  ]);
  // An expression for every path is longer than short paths, so it goes before them.
  assert.deepEqual(found([routeOf("all", [], "~ /.*"), routeOf("b", [], "/b"), routeOf("c", [], "/longer", "= /c")]), [
    "shadowed-route b: all",
  ]);
  // A narrower name of a host goes first where the listener leaves both one host.
  assert.deepEqual(found([routeOf("a", ["*.test"], "/"), routeOf("b", ["x.test"], "/")], "x.test"), [
    "shadowed-route a: b",
  ]);
  assert.deepEqual(found([routeOf("a", ["*.test"], "/"), routeOf("b", ["x.test"], "/")]), []);
  assert.deepEqual(found([routeOf("a", ["a.test"], "/")], "b.test"), ["unreachable-hostname a: b.test"]);
  const old = { ...routeOf("z", [], "/"), createdAt: 1 };
  assert.deepEqual(found([{ ...routeOf("a", [], "/"), createdAt: 2 }, old]), ["shadowed-route a: z"]);
  // By name before key, as the gateway decides.
  const [short, long] = ["a", "a-b"].map((name) => ({ ...routeOf(`default/${name}.00`, [], "/"), name }));
  assert.ok(short !== undefined && long !== undefined);
  assert.deepEqual(found([long, short]), ["shadowed-route default/a-b.00: a"]);
});

test("routes of connections: the first that has a host takes it", () => {
  const tcp = (name: string, ...hostnames: readonly string[]): TcpRoute => {
    return { key: name, name, namespace: "default", hostnames, backends: [] };
  };
  assert.deepEqual(found([tcp("a"), tcp("b")]), ["shadowed-route b: a"]);
  assert.deepEqual(found([tcp("z", "a.test"), tcp("b", "b.test"), tcp("a", "a.test", "b.test")]), [
    "shadowed-route a: b z",
  ]);
  // One of two hosts is left; a narrower name goes first; names that the listener does not take.
  assert.deepEqual(found([tcp("a", "a.test"), tcp("b", "a.test", "b.test")]), []);
  assert.deepEqual(found([tcp("wide", "*.test"), tcp("narrow", "a.test")], "a.test"), ["shadowed-route wide: narrow"]);
  assert.deepEqual(found([tcp("a", "b.test")], "a.test"), ["unreachable-hostname a: a.test"]);
});

test("matches that no request can meet", () => {
  const conflicting = matchOn("/", { method: "GET", headers: [header(":method", "PUT")] });
  assert.deepEqual(found([routeOf("a", [], conflicting)]), [
    "impossible-match a[0]: the method cannot be both GET and PUT",
  ]);
  const query = matchOn("/", { query: [header("q", "1"), header("q", "2")] });
  assert.deepEqual(found([routeOf("a", [], query)]), ["impossible-match a[0]: q cannot be both 1 and 2"]);
  // A header may occur twice.
  assert.deepEqual(found([routeOf("a", [], matchOn("/", { headers: [header("q", "1"), header("q", "2")] }))]), []);
});

test("authentication that a broader route bypasses", () => {
  const get = matchOn("/admin", { method: "GET" });
  const bypassed = "bypassed-authentication admin[0]: basicAuth";
  assert.deepEqual(found([secured(routeOf("admin", [], get)), open(routeOf("all", [], "/"))]), [bypassed]);
  assert.deepEqual(found([secured(routeOf("admin", [], "= /admin")), open(routeOf("all", [], "/"))]), [bypassed]);
  const either = { ...secured(routeOf("admin", [], get)), policies: EITHER };
  assert.deepEqual(found([either, open(routeOf("all", [], "/"))]), ["bypassed-authentication admin[0]: satisfy"]);
  // The whole prefix is protected, or the rest of it by another route, or the backend is another, or the host.
  assert.deepEqual(found([secured(routeOf("admin", [], "/admin")), open(routeOf("all", [], "/"))]), []);
  const rest = secured(routeOf("rest", [], "/admin"));
  assert.deepEqual(found([secured(routeOf("admin", [], get)), rest, open(routeOf("all", [], "/"))]), []);
  assert.deepEqual(found([secured(routeOf("admin", [], get)), open(routeOf("all", [], "/"), 2)]), []);
  assert.deepEqual(found([secured(routeOf("admin", ["a.test"], get)), open(routeOf("all", ["b.test"], "/"))]), []);
  const routes = [secured(routeOf("admin", [], get)), open(routeOf("all", [], "/"))];
  assert.deepEqual(lint(routes, "", BASIC), []);
  // A route of all hosts gets what those of the host do not select; an expression leaves out its parent.
  const all = open(routeOf("all", [], "/"));
  assert.deepEqual(found([secured(routeOf("admin", ["a.test"], get)), all]), [bypassed]);
  assert.deepEqual(found([secured(routeOf("admin", [], "~ /admin/.*")), all]), [bypassed]);
  const exact = secured(routeOf("exact", [], "= /admin"));
  assert.deepEqual(found([secured(routeOf("admin", [], "~ /admin/.*")), exact, all]), []);
  // Another expression takes what is left, or the open route sends requests nowhere.
  assert.deepEqual(found([secured(routeOf("admin", [], get)), secured(routeOf("any", [], "~ /adm.*")), all]), []);
  const pool = [{ ...on(1), target: { type: "pool", key: "/app" } }] as Route["backends"];
  const pooled = [secured(routeOf("admin", [], get)), all].map((route) => ({ ...route, backends: pool }));
  assert.deepEqual(found(pooled), [bypassed], "by a pool");
  const redirect = { requestRedirect: { path: { full: "/login" } } } as unknown as Route["policies"];
  assert.deepEqual(found([secured(routeOf("admin", [], get)), { ...all, backends: [], policies: redirect }]), []);
});

const rewriting = (route: Route, prefix: string): Route => {
  return { ...route, policies: { ...route.policies, urlRewrite: { path: { prefix } } } as Route["policies"] };
};

test("authentication that another route bypasses because it rewrites paths", () => {
  const admin = secured(routeOf("admin", [], "/admin"));
  const api = rewriting(open(routeOf("api", [], "/api")), "/");
  assert.deepEqual(
    lint([admin, api]).map((each) => each.found),
    [["basicAuth", "api", "/api/admin", "/admin"]],
  );
  const deep = rewriting(secured(routeOf("deep", [], "/v1")), "/a/b");
  const some = rewriting(open(routeOf("some", [], "/some")), "/a");
  assert.deepEqual(
    lint([deep, some]).map((each) => each.found),
    [["basicAuth", "some", "/some/b", "/a/b"]],
  );
  // Where it sends requests is another place, or those requests are protected too, or it is another backend or host.
  assert.deepEqual(found([admin, rewriting(api, "/v2")]), []);
  assert.deepEqual(found([admin, api, secured(routeOf("more", [], "/api/admin"), 2)]), []);
  assert.deepEqual(found([admin, rewriting(open(api, 2), "/")]), []);
  assert.deepEqual(
    found([
      { ...admin, hostnames: ["a.test"] },
      { ...api, hostnames: ["b.test"] },
    ]),
    [],
  );
});

test("a way past authentication is one that a request can take", () => {
  const some = fc.array(
    fc.record({
      hosts: fc.subarray(["a.test", "*.test"]),
      path: fc.constantFrom("/", "/a", "/a/b", "/b", "= /a", "= /a/b", "= /b/", "~ /.*", "~ /a.*", "~ /a/.*"),
      method: fc.constantFrom(undefined, undefined, "GET"),
      guarded: fc.boolean(),
      prefix: fc.constantFrom(undefined, undefined, "/", "/a", "/b"),
      port: fc.constantFrom(1, 1, 2),
    }),
    { minLength: 2, maxLength: 6 },
  );
  let count = 0;
  fc.assert(
    fc.property(some, (list) => {
      const routes = list.map(({ hosts, path, method, guarded, prefix, port }, i) => {
        const route = routeOf(`r${i}`, hosts, matchOn(path, method === undefined ? {} : { method }));
        const made = guarded ? secured(route, port) : open(route, port);
        return prefix === undefined ? made : rewriting(made, prefix);
      });
      const router = routerOf(...routes);
      for (const { code, route, found } of lint(routes)) {
        if (code !== "bypassed-authentication") continue;
        count++;
        const [, name, target] = found;
        const took = ["a.test", "b.test", "other.example"].flatMap((authority) =>
          ["GET", "PUT"].map((method) => router.select(requestTo(target, { authority, method }), authority)?.route.key),
        );
        assert.ok(took.includes(name), JSON.stringify({ route: route.key, name, target, took }));
      }
    }),
    { numRuns: 500 },
  );
  assert.ok(count > 50, `only ${count} findings`);
});

const path = fc.constantFrom("/", "/a", "/a/", "/a/b", "= /a", "= /", "~ /.*", "~ /a.*");
const match = fc
  .record({
    path,
    method: fc.constantFrom(undefined, "GET", "PUT"),
    headers: fc.subarray([header("x", "1"), header("y", "1")]),
  })
  .map(({ path, method, headers }) => matchOn(path, { ...(method !== undefined && { method }), headers }));
const routeList = fc
  .array(
    fc.record({ hosts: fc.subarray(["a.test", "*.test"]), matches: fc.array(match, { minLength: 1, maxLength: 3 }) }),
    { minLength: 1, maxLength: 6 },
  )
  .map((list) => list.map(({ hosts, matches }, i) => routeOf(`r${i}`, hosts, ...matches)));

test("no request reaches what is said to be unreachable", () => {
  const requests = ["a.test", "b.test", "other.example"].flatMap((authority) =>
    ["/", "/a", "/a/", "/a/b", "/a/b/c", "/ab", "/c"].flatMap((target) =>
      ["GET", "PUT", "POST"].flatMap((method) =>
        [[], ["x", "1"], ["y", "1"], ["x", "1", "y", "1"]].map((headers) =>
          requestTo(target, { authority, method, headers }),
        ),
      ),
    ),
  );
  let count = 0;
  fc.assert(
    fc.property(routeList, (routes) => {
      const router = routerOf(...routes);
      const findings = lint(routes).filter(({ code }) => code !== "bypassed-authentication");
      count += findings.length;
      for (const request of requests) {
        const selected = router.select(request, request.authority);
        const hit = findings.find(
          ({ route, match }) =>
            route.key === selected?.route.key && (match === undefined || match === selected.matchIndex),
        );
        assert.equal(hit, undefined, JSON.stringify(hit));
      }
    }),
    { numRuns: 300 },
  );
  assert.ok(count > 50, `only ${count} findings`);
});

test("10,000 routes of one host are compared without comparing each with each", () => {
  const routes = Array.from({ length: 10_000 }, (_, i) => secured(routeOf(`r${i}`, ["a.test"], `= /p/${i}/x`)));
  let reads = 0;
  const counted = routes.map((route) =>
    Object.defineProperty({ ...route }, "matches", {
      get() {
        reads++;
        return route.matches;
      },
    }),
  );
  assert.equal(lint([...counted, open(routeOf("all", ["a.test"], "/"))]).length, 10_000);
  assert.ok(reads < 20 * routes.length, `${reads} reads`);
});
