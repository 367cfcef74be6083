import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { HttpRequest } from "../../http/message/message.ts";
import type { Route } from "../../ir/ir.ts";
import { matchOn, requestTo, routeOf, routerOf } from "./fixtures/routes.ts";
import { describeCandidate } from "./reason.ts";

const winner = routeOf("win", ["example.com"], "= /foo");
const request = requestTo("/foo?q=1", { headers: ["x-env", "a", "x-env", "b", "authorization", "Bearer secret"] });

const HIDDEN = new Set(["authorization"]);

/** The choice among the routes, and the text of each reason. */
function explain(of: HttpRequest, routes: readonly Route[], hidden = HIDDEN) {
  const router = routerOf(...routes);
  const { candidates, ...rest } = router.explain(of, "example.com", router.select(of, "example.com"));
  const described = candidates.map((each) => ({
    route: each.route.key,
    matched: each.matched,
    reason: describeCandidate(each, hidden),
  }));
  return { candidates: described, ...rest };
}

function reasonFor(route: Route): string | undefined {
  const { candidates } = explain(request, [winner, route]);
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
      assert.deepEqual(explain(request, [second, first]).candidates, [
        { route: "w", matched: true, reason: "selected" },
        { route: "a", matched: true, reason: `precedence: w is more specific (${because})` },
      ]);
    });
  }
});

test("the caller can name more headers to hide", () => {
  const { candidates } = explain(request, [routeOf("r", [], header("x-env", "wanted"))], new Set(["x-env"]));
  assert.deepEqual(candidates, [{ route: "r", matched: false, reason: "header x-env: <redacted> does not match" }]);
});

test("candidates: the selected one, others that fit, nearest misses, other hosts; a route with two hostnames counts once", () => {
  const { selected, evaluatedRoutes, candidates } = explain(request, [
    routeOf("elsewhere", ["a.org", "b.org"], "/foo"),
    routeOf("path", [], "/bar"),
    routeOf("method", [], matchOn("/foo", { method: "PUT" })),
    routeOf("beaten", [], "/foo"),
    routeOf("twice", ["example.com", "*.com"], "/foo"),
  ]);
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
  const { selected, candidates } = explain(requestTo("/other"), [winner]);
  assert.equal(selected, undefined);
  assert.deepEqual(candidates, [{ route: "win", matched: false, reason: "path: /other is not exactly /foo" }]);
});

test("long paths are truncated, and at most 10 routes of other hosts are listed", () => {
  const others = Array.from({ length: 12 }, (_, i) => routeOf(`o${i}`, [`${i}.org`], "/"));
  const { evaluatedRoutes, candidates } = explain(requestTo(`/${"x".repeat(8000)}`), [winner, ...others]);
  assert.deepEqual(evaluatedRoutes, ["win"]);
  assert.equal(candidates.length, 11);
  assert.ok((candidates[0]?.reason.length ?? 0) < 400);
});

test("with very many routes, the nearest are explained, more are named, and the rest is counted", () => {
  const others = Array.from({ length: 500 }, (_, i) => routeOf(`other-${i}`, ["example.com"], `= /other-${i}`));
  const near = routeOf("near", ["example.com"], matchOn("/foo", { method: "POST" }));
  const similar = routeOf("similar", ["example.com", "*.com"], "/bar", "= /fo");
  const { evaluatedRoutes, candidates, omitted } = explain(request, [...others, similar, near, winner]);
  assert.deepEqual(candidates.slice(0, 3), [
    { route: "win", matched: true, reason: "selected" },
    { route: "near", matched: false, reason: "method: GET is not POST" },
    { route: "similar", matched: false, reason: "path: /foo is not exactly /fo (nearest of 2 matches)" },
  ]);
  assert.ok(["win", "near", "similar"].every((key) => evaluatedRoutes.includes(key)));
  assert.deepEqual([candidates.length, evaluatedRoutes.length, omitted], [20, 100, 403]);
});

test("many routes with the path of the request: those that meet most conditions come first, and the rest is counted", () => {
  const others = Array.from({ length: 150 }, (_, i) => routeOf(`method-${i}`, [], matchOn("/foo", { method: "PUT" })));
  const near = routeOf("near", [], header("x-env", "c"));
  const { evaluatedRoutes, candidates, omitted } = explain(request, [...others, near, routeOf("far", [], "/bar")]);
  assert.deepEqual(candidates[0], { route: "near", matched: false, reason: 'header x-env: "a", "b" is not "c"' });
  assert.deepEqual([candidates.length, evaluatedRoutes.length, omitted], [20, 100, 52]);
});

test("a value that is too long for the pattern of a route that was not tried does not fail the request", () => {
  const slow = routeOf(
    "slow",
    ["example.com"],
    matchOn("/", { headers: [{ name: "x-long", type: "regex", value: "(a?){400}" }] }),
  );
  const long = requestTo("/foo", { headers: ["x-long", "a".repeat(8000)] });
  const { selected, candidates } = explain(long, [winner, slow]);
  assert.equal(selected?.route.key, "win");
  assert.match(candidates[1]?.reason ?? "", /^pattern: .*a value of 8000 characters is too long/);
  assert.throws(() => explain(long, [slow]), { code: "TG_INVALID_REQUEST" });
});

test("a query that does not fit is named, also after headers that do", () => {
  const query = [
    { name: "q", type: "exact", value: "1" },
    { name: "p", type: "exact", value: "2" },
  ] as const;
  const headers = [{ name: "x-env", type: "exact", value: "a" }] as const;
  assert.equal(reasonFor(routeOf("r", [], matchOn("/foo", { headers, query }))), "query p: missing");
});

test("the nearest route of a request that fits none: by its conditions, then by the beginning of its path, then any", () => {
  const nearest = (...routes: Route[]): string => {
    const miss = routerOf(...routes).nearest(request, "example.com");
    return miss === undefined ? "" : `${miss.route.key}: ${describeCandidate(miss, HIDDEN)}`;
  };
  const method = routeOf("m", [], matchOn("/foo", { method: "POST" }));
  const env = routeOf("h", [], header("x-env", "c"));
  const paths = routeOf("p", [], "/other", "= /fo", "/f");
  const elsewhere = routeOf("e", ["a.org"], "/foo");
  assert.equal(nearest(elsewhere, paths, method, env), 'h: header x-env: "a", "b" is not "c"');
  assert.equal(nearest(paths, method), "m: method: GET is not POST");
  assert.equal(
    nearest(elsewhere, routeOf("far", [], "/x"), paths),
    "p: path: /foo is not exactly /fo (nearest of 3 matches)",
  );
  assert.equal(nearest(paths), "p: path: /foo is not exactly /fo (nearest of 3 matches)");
  assert.equal(nearest(elsewhere), "e: host: example.com does not match a.org");
  assert.equal(nearest(), "");
});
