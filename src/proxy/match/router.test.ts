import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { HttpRequest } from "../../http/message/message.ts";
import type { Route, ValueMatch } from "../../ir/ir.ts";
import { matchOn, requestTo, routeOf, routerOf } from "./fixtures/routes.ts";
import { RouterBuilder } from "./router.ts";

function chosen(routes: readonly Route[], request: HttpRequest, host = "example.com"): string | undefined {
  return routerOf(...routes).select(request, host)?.route.key;
}

function exact(name: string, value: string): ValueMatch {
  return { name, type: "exact", value };
}

function regex(name: string, value: string): ValueMatch {
  return { name, type: "regex", value };
}

describe("one path", () => {
  const cases: [pattern: string, path: string, fits: boolean][] = [
    ["/", "/", true],
    ["/", "/any/thing", true],
    ["", "/any", true],
    ["/foo", "/foo", true],
    ["/foo", "/foo/", true],
    ["/foo", "/foo//", true],
    ["/foo", "/foo/bar", true],
    ["/foo", "/foobar", false],
    ["/foo", "/fo", false],
    ["/foo", "/Foo", false],
    ["/foo", "/", false],
    ["/foo/", "/foo", true],
    ["/foo//", "/foo/bar", true],
    ["/foo/bar", "/foo", false],
    ["/foo//bar", "/foo//bar/baz", true],
    ["/foo//bar", "/foo/bar", false],
    ["foo", "/foo", false],
    ["= /foo", "/foo", true],
    ["= /foo", "/foo/", false],
    ["= /foo/", "/foo", false],
    ["= /foo", "/FOO", false],
    ["= /a%20b", "/a%20b", true],
    ["= /a b", "/a%20b", false],
    ["~ /fo+", "/foo", true],
    ["~ /fo+", "/foo/bar", false],
    ["~ fo+", "/foo", false],
    ["~ /a|/ab", "/ab", true],
    ["~ ^/x$", "/x", true],
    ["~ (?i)/x", "/X", true],
    ["~ /ab?", "/a", true],
    ["~ /ab*c{0,1}", "/a", true],
    ["~ /ab{0}", "/a", true],
    ["~ /abc|/x", "/x", true],
    ["~ /abc[|]x", "/abc|x", true],
    ["~ /ab(?i)c", "/abC", true],
    ["~ \\Q/a.b\\E", "/a.b", true],
  ];
  for (const [pattern, path, fits] of cases) {
    test(`${pattern || "(empty)"} ${fits ? "fits" : "does not fit"} ${path}`, () => {
      assert.equal(chosen([routeOf("r", [], pattern)], requestTo(path)), fits ? "r" : undefined);
    });
  }
});

describe("conditions", () => {
  type Case = [name: string, match: Parameters<typeof matchOn>[1], request: Partial<HttpRequest>, fits: boolean];
  const cases: Case[] = [
    ["method", { method: "GET" }, { method: "GET" }, true],
    ["other method", { method: "POST" }, { method: "GET" }, false],
    ["methods are case-sensitive", { method: "get" }, { method: "GET" }, false],
    ["header", { headers: [exact("x-a", "1")] }, { headers: ["x-a", "1"] }, true],
    ["header name in other case", { headers: [exact("X-A", "1")] }, { headers: ["x-a", "1"] }, true],
    ["header value in other case", { headers: [exact("x-a", "v")] }, { headers: ["x-a", "V"] }, false],
    ["missing header", { headers: [exact("x-a", "1")] }, { headers: ["x-b", "1"] }, false],
    ["second line of a header", { headers: [exact("x-a", "2")] }, { headers: ["x-a", "1", "x-a", "2"] }, true],
    ["a list in one line is one value", { headers: [exact("x-a", "2")] }, { headers: ["x-a", "1, 2"] }, false],
    ["all headers must fit", { headers: [exact("a", "1"), exact("b", "2")] }, { headers: ["a", "1"] }, false],
    ["header in UTF-8", { headers: [exact("x-a", "é")] }, { headers: ["x-a", "Ã©"] }, true],
    ["regex on a header in UTF-8", { headers: [regex("x-a", "[é]")] }, { headers: ["x-a", "Ã©"] }, true],
    ["regex on a whole header", { headers: [regex("x-a", "v[0-9]+")] }, { headers: ["x-a", "v10"] }, true],
    ["regex on a part of a header", { headers: [regex("x-a", "v[0-9]+")] }, { headers: ["x-a", "xv10"] }, false],
    [":method", { headers: [regex(":method", "GET|HEAD")] }, { method: "HEAD" }, true],
    [":scheme", { headers: [exact(":scheme", "https")] }, { scheme: "https" }, true],
    [":authority", { headers: [exact(":authority", "example.com:80")] }, { authority: "example.com:80" }, true],
    ["host", { headers: [exact("host", "example.com:80")] }, { authority: "example.com:80" }, true],
    [":path has the query", { headers: [exact(":path", "/p?q=1")] }, { path: "/p", search: "?q=1" }, true],
    ["query", { query: [exact("q", "1")] }, { search: "?a=0&q=1" }, true],
    ["missing query", { query: [exact("q", "1")] }, { search: "" }, false],
    ["query name is case-sensitive", { query: [exact("Q", "1")] }, { search: "?q=1" }, false],
    ["query without value", { query: [exact("q", "")] }, { search: "?q" }, true],
    ["last of duplicate parameters", { query: [exact("q", "2")] }, { search: "?q=1&q=2" }, true],
    ["first of duplicate parameters", { query: [exact("q", "1")] }, { search: "?q=1&q=2" }, false],
    ["encoded query", { query: [exact("q r", "a&é b")] }, { search: "?q+r=a%26%C3%A9+b" }, true],
    ["regex on a query", { query: [regex("q", "[0-9]+")] }, { search: "?q=123" }, true],
    ["regex on a part of a query", { query: [regex("q", "[0-9]+")] }, { search: "?q=123a" }, false],
  ];
  for (const [name, match, request, fits] of cases) {
    test(`${name}: ${fits ? "fits" : "does not fit"}`, () => {
      const routes = [routeOf("r", [], matchOn("/", match))];
      assert.equal(chosen(routes, requestTo("/", request)), fits ? "r" : undefined);
    });
  }

  test("a CONNECT without a path is routed like /", () => {
    const request = requestTo("", { method: "CONNECT" });
    assert.equal(chosen([routeOf("r", [], "= /")], request), "r");
    assert.equal(chosen([routeOf("r", [], "/")], request), "r");
    assert.equal(chosen([routeOf("r", [], "/foo")], request), undefined);
  });

  test("the query of the next request is parsed again", () => {
    const router = routerOf(routeOf("r", [], matchOn("/", { query: [exact("q", "1")] })));
    assert.notEqual(router.select(requestTo("/?q=1"), "a"), undefined);
    assert.equal(router.select(requestTo("/?q=2"), "a"), undefined);
    assert.equal(router.select(requestTo("/"), "a"), undefined);
    assert.notEqual(router.select(requestTo("/?q=1"), "a"), undefined);
  });
});

describe("precedence", () => {
  const a = exact("a", "1");
  const b = exact("b", "1");
  const request = requestTo("/foo/bar?a=1&b=1", { headers: ["a", "1", "b", "1"] });
  // The winner's key sorts last, so that alphabetical order cannot be what decides.
  const cases: [rule: string, winner: Route, loser: Route][] = [
    ["exact before a longer regex", routeOf("z", [], "= /foo/bar"), routeOf("a", [], "~ /foo/[a-z][a-z][a-z]")],
    [
      "exact before method and headers",
      routeOf("z", [], "= /foo/bar"),
      routeOf("a", [], matchOn("/foo/bar", { method: "GET", headers: [a] })),
    ],
    ["longer prefix", routeOf("z", [], "/foo/bar"), routeOf("a", [], "/foo")],
    ["longer prefix before method", routeOf("z", [], "/foo"), routeOf("a", [], matchOn("/", { method: "GET" }))],
    [
      "a name before a longer one, although its key sorts later",
      { ...routeOf("default/a.00.http", [], "/foo"), name: "a" },
      { ...routeOf("default/a-b.00.http", [], "/foo"), name: "a-b" },
    ],
    ["a trailing slash counts", routeOf("z", [], "/foo/"), routeOf("a", [], "/foo")],
    ["but only one", routeOf("z", [], "~ /foo/.*"), routeOf("a", [], "/foo/////////")],
    ["longer regex", routeOf("z", [], "~ /foo/[a-z]+"), routeOf("a", [], "~ /foo/.*")],
    ["longer regex before a prefix", routeOf("z", [], "~ /foo/.*"), routeOf("a", [], "/foo")],
    ["longer prefix before a regex", routeOf("z", [], "/foo/bar"), routeOf("a", [], "~ /.*")],
    ["prefix before a regex of its length", routeOf("z", [], "/foo"), routeOf("a", [], "~ /.*|")],
    [
      "prefix before a regex of its length, even with method",
      routeOf("z", [], "/foo"),
      routeOf("a", [], matchOn("~ /.*|", { method: "GET" })),
    ],
    ["length of a pattern in bytes", routeOf("z", [], "~ /foo/bar|/é"), routeOf("a", [], "~ /foo/bar|/e")],
    [
      "method before headers",
      routeOf("z", [], matchOn("/foo", { method: "GET" })),
      routeOf("a", [], matchOn("/foo", { headers: [a, b] })),
    ],
    [
      "more headers before query",
      routeOf("z", [], matchOn("/foo", { headers: [a, b] })),
      routeOf("a", [], matchOn("/foo", { headers: [a], query: [a, b] })),
    ],
    [
      "more query parameters",
      routeOf("z", [], matchOn("/foo", { query: [a, b] })),
      routeOf("a", [], matchOn("/foo", { query: [a] })),
    ],
    ["key in order of code units", routeOf("route10", [], "/foo"), routeOf("route2", [], "/foo")],
    ["capitals before small letters", routeOf("B", [], "/foo"), routeOf("a", [], "/foo")],
    ["exact host before a longer path", routeOf("z", ["example.com"], "/"), routeOf("a", [], "= /foo/bar")],
    ["wildcard before no host", routeOf("z", ["*.com"], "/"), routeOf("a", [], "/foo/bar")],
    ["exact before wildcard", routeOf("z", ["example.com"], "/"), routeOf("a", ["*.com"], "/foo/bar")],
    [
      "a match may win for a route whose other match would lose",
      routeOf("z", [], "/", "/foo/bar"),
      routeOf("a", [], "/foo"),
    ],
  ];
  for (const [rule, winner, loser] of cases) {
    test(rule, () => {
      assert.equal(chosen([loser], request), loser.key, "the loser alone must fit");
      assert.equal(chosen([winner, loser], request), winner.key);
      assert.equal(chosen([loser, winner], request), winner.key);
    });
  }

  test("the longest wildcard suffix goes first, at any depth", () => {
    const routes = [routeOf("c", ["*.c"], "/"), routeOf("bc", ["*.b.c"], "/")];
    assert.equal(chosen(routes, request, "a.b.c"), "bc");
    assert.equal(chosen(routes, request, "x.a.b.c"), "bc");
    assert.equal(chosen(routes, request, "b.c"), "c");
    assert.equal(chosen(routes, request, "c"), undefined);
  });

  test("if no route of a hostname fits, the next hostname is tried", () => {
    const routes = [
      routeOf("exact", ["a.b.c"], "/exact"),
      routeOf("narrow", ["*.b.c"], "/narrow"),
      routeOf("wide", ["*.c"], "/wide"),
      routeOf("any", [], "/any"),
    ];
    for (const key of ["exact", "narrow", "wide", "any"])
      assert.equal(chosen(routes, requestTo(`/${key}`), "a.b.c"), key);
    assert.equal(chosen(routes, requestTo("/none"), "a.b.c"), undefined);
  });

  test("`*` and an empty hostname match any host", () => {
    for (const hostname of ["*", ""]) assert.equal(chosen([routeOf("r", [hostname], "/")], request, "any.host"), "r");
  });
});

describe("what is selected", () => {
  test("the matched prefix has no trailing slash, and is undefined for exact and regex", () => {
    const router = routerOf(routeOf("r", [], "/", "/foo/", "= /exact", "~ /r.gex"));
    const prefixOf = (path: string) => router.select(requestTo(path), "a")?.matchedPrefix;
    assert.equal(prefixOf("/any"), "/");
    assert.equal(prefixOf("/foo/bar"), "/foo");
    assert.equal(prefixOf("/exact"), undefined);
    assert.equal(prefixOf("/regex"), undefined);
  });

  test("the earlier of two equal matches of one route", () => {
    const selected = routerOf(routeOf("r", [], "/x", "/foo", "/foo")).select(requestTo("/foo"), "a");
    assert.equal(selected?.matchIndex, 1);
  });

  test("an empty router selects nothing", () => {
    assert.equal(routerOf().select(requestTo("/"), "a"), undefined);
  });
});

describe("building", () => {
  test("a bad regular expression is reported with its route and place, and adds nothing", () => {
    const builder = new RouterBuilder<{ key: string }>();
    const bad = routeOf("gw/default/r", [], "/", matchOn("/", { headers: [regex("X-A", "(")] }));
    assert.throws(
      () => builder.add(bad, { key: bad.key }),
      /^Error: route gw\/default\/r: matches\[1\]: header x-a: .*\(/,
    );
    assert.equal(builder.finish().select(requestTo("/"), "a"), undefined);
  });

  test("a regular expression that makes other engines backtrack ends at once", () => {
    const router = routerOf(routeOf("r", [], "~ (/a+)+b(.*)*c"));
    assert.equal(router.select(requestTo(`/${"a".repeat(8000)}`), "a"), undefined);
  });
});

test("a pattern that may take long is not tried on a long value: the request is rejected", () => {
  const slow = "(a?){1000}a{1000}";
  const long = "a".repeat(4000);
  const rejected = { code: "TG_INVALID_REQUEST" };
  const byHeader = [routeOf("r", [], matchOn("/", { headers: [regex("x-a", slow)] }))];
  assert.throws(() => chosen(byHeader, requestTo("/", { headers: ["x-a", long] })), rejected);
  assert.equal(chosen(byHeader, requestTo("/", { headers: ["x-a", "b"] })), undefined);
  const byQuery = [routeOf("r", [], matchOn("/", { query: [regex("q", slow)] }))];
  assert.throws(() => chosen(byQuery, requestTo("/", { search: `?q=${long}` })), rejected);
  const byPath = [routeOf("r", [], `~ /${slow}`)];
  assert.throws(() => chosen(byPath, requestTo(`/${long}`)), rejected);
  assert.equal(chosen([routeOf("r", [], "~ /a+")], requestTo(`/${long}`)), "r");
});
