import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { HttpRequest } from "../../http/message.ts";
import type { Route } from "../../ir/ir.ts";
import { matchOn, requestTo, routeOf, routerOf } from "./fixtures/routes.ts";

const winner = routeOf("win", ["example.com"], "= /foo");
const request = requestTo("/foo?q=1", { headers: ["x-env", "a", "x-env", "b", "authorization", "Bearer secret"] });

function reasonFor(route: Route, of: HttpRequest = request): string | undefined {
  const { candidates } = routerOf(winner, route).explain(of, "example.com");
  return candidates.find((candidate) => candidate.route === route.key)?.reason;
}

function header(name: string, value: string, type: "exact" | "regex" = "exact") {
  return matchOn("/foo", { headers: [{ name, type, value }] });
}

describe("reasons", () => {
  const cases: [route: Route, reason: string][] = [
    [routeOf("r", [], "= /bar"), "path: /foo is not exactly /bar"],
    [routeOf("r", [], "/foo/bar"), "path: /foo is not under prefix /foo/bar"],
    [routeOf("r", [], "~ /b.*"), "path: /foo does not match /b.*"],
    [routeOf("r", [], matchOn("/foo", { method: "POST" })), "method: GET is not POST"],
    [routeOf("r", [], header("x-env", "c")), 'header x-env: "a", "b" is not "c"'],
    [routeOf("r", [], header("x-env", "c.*", "regex")), 'header x-env: "a", "b" does not match c.*'],
    [routeOf("r", [], header("X-None", "c")), "header x-none: missing"],
    [routeOf("r", [], header(":authority", "other")), 'header :authority: "example.com" is not "other"'],
    [routeOf("r", [], header("authorization", "Bearer wanted")), "header authorization: <redacted> does not match"],
    [
      routeOf("r", [], matchOn("/foo", { query: [{ name: "q", type: "exact", value: "2" }] })),
      'query q: "1" is not "2"',
    ],
    [routeOf("r", [], matchOn("/foo", { query: [{ name: "p", type: "exact", value: "2" }] })), "query p: missing"],
    [routeOf("r", ["a.org", "*.b.org"], "/foo"), "host: example.com does not match a.org, *.b.org"],
    [routeOf("r", [], "/nope", matchOn("/foo", { method: "POST" })), "method: GET is not POST (nearest of 2 matches)"],
    [routeOf("r", [], "/foo"), "precedence: win is more specific (hostname example.com before *)"],
    [routeOf("r", ["*.com"], "/foo"), "precedence: win is more specific (hostname example.com before *.com)"],
    [routeOf("r", ["example.com"], "/foo"), "precedence: win is more specific (exact path)"],
    [routeOf("zzz", ["example.com"], "= /foo"), "precedence: win is more specific (route name sorts first)"],
    [
      { ...routeOf("zzz", ["example.com"], "= /foo"), name: "win" },
      "precedence: win is more specific (route key sorts first)",
    ],
  ];
  for (const [route, reason] of cases) test(reason, () => assert.equal(reasonFor(route), reason));

  const details: [winner: Route, loser: Route, because: string][] = [
    [{ ...routeOf("w", [], "/foo"), createdAt: 1 }, { ...routeOf("a", [], "/foo"), createdAt: 2 }, "older route"],
    [routeOf("w", [], "/foo"), routeOf("a", [], "/"), "longer path"],
    [routeOf("w", [], "/foo"), routeOf("a", [], "~ /foo"), "path prefix before regex"],
    [routeOf("w", [], matchOn("/foo", { method: "GET" })), routeOf("a", [], "/foo"), "has a method"],
    [routeOf("w", [], header("x-env", "a")), routeOf("a", [], "/foo"), "more headers"],
    [
      routeOf("w", [], matchOn("/foo", { query: [{ name: "q", type: "exact", value: "1" }] })),
      routeOf("a", [], "/foo"),
      "more query parameters",
    ],
  ];
  for (const [first, second, because] of details) {
    test(`precedence: ${because}`, () => {
      assert.deepEqual(routerOf(second, first).explain(request, "example.com").candidates, [
        { route: "w", matched: true, reason: "selected" },
        { route: "a", matched: true, reason: `precedence: w is more specific (${because})` },
      ]);
    });
  }
});

test("the caller can name more headers to hide", () => {
  const router = routerOf(routeOf("r", [], header("x-env", "wanted")));
  const { candidates } = router.explain(request, "example.com", new Set(["x-env"]));
  assert.deepEqual(candidates, [{ route: "r", matched: false, reason: "header x-env: <redacted> does not match" }]);
});

test("candidates: the selected one, others that fit, nearest misses, other hosts; a route with two hostnames counts once", () => {
  const router = routerOf(
    routeOf("elsewhere", ["a.org", "b.org"], "/foo"),
    routeOf("path", [], "/bar"),
    routeOf("method", [], matchOn("/foo", { method: "PUT" })),
    routeOf("beaten", [], "/foo"),
    routeOf("twice", ["example.com", "*.com"], "/foo"),
  );
  const { selected, evaluatedRoutes, candidates } = router.explain(request, "example.com");
  assert.equal(selected?.route.key, "twice");
  assert.deepEqual(evaluatedRoutes, ["beaten", "method", "path", "twice"]);
  assert.deepEqual(
    candidates.map(({ route, matched }) => [route, matched]),
    [
      ["twice", true],
      ["beaten", true],
      ["method", false],
      ["path", false],
      ["elsewhere", false],
    ],
  );
});

test("a request that matches no route has a reason for each", () => {
  const { selected, candidates } = routerOf(winner).explain(requestTo("/other"), "example.com");
  assert.equal(selected, undefined);
  assert.deepEqual(candidates, [{ route: "win", matched: false, reason: "path: /other is not exactly /foo" }]);
});

test("long paths are truncated, and at most 50 routes of other hosts are listed", () => {
  const others = Array.from({ length: 60 }, (_, i) => routeOf(`o${i}`, [`${i}.org`], "/"));
  const { evaluatedRoutes, candidates } = routerOf(winner, ...others).explain(
    requestTo(`/${"x".repeat(8000)}`),
    "example.com",
  );
  assert.deepEqual(evaluatedRoutes, ["win"]);
  assert.equal(candidates.length, 51);
  assert.ok((candidates[0]?.reason.length ?? 0) < 400);
});

test("with very many routes, the nearest are explained and the rest counted", () => {
  const others = Array.from({ length: 500 }, (_, i) => routeOf(`other-${i}`, ["example.com"], `= /other-${i}`));
  const near = routeOf("near", ["example.com"], matchOn("/foo", { method: "POST" }));
  const { evaluatedRoutes, candidates, omitted } = routerOf(...others, near, winner).explain(request, "example.com");
  assert.equal(evaluatedRoutes.length, 502);
  assert.deepEqual(
    candidates.slice(0, 2).map(({ route }) => route),
    [winner.key, near.key],
  );
  assert.deepEqual([candidates.length, omitted], [200, 302]);
});
