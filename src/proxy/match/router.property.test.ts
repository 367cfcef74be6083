/** `select` and `explain` against a matcher that sorts all matches by the rules and tries them one by one. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/helpers/property.ts";
import type { HttpRequest } from "../../http/message/message.ts";
import type { Route, RouteMatch, ValueMatch } from "../../ir/ir.ts";
import { pathMatch, routerOf } from "./fixtures/routes.ts";

interface Found {
  readonly route: Route;
  readonly matchIndex: number;
  readonly bucket: number;
  readonly match: RouteMatch;
}

/** 0 = exact host, 1000 - length of the suffix = wildcard, 2000 = any, undefined = does not fit. */
function bucketOf(hostname: string, host: string): number | undefined {
  if (hostname === "*") return 2000;
  if (hostname.startsWith("*.")) return host.endsWith(hostname.slice(1)) ? 1000 - hostname.length : undefined;
  return hostname === host ? 0 : undefined;
}

function pathFits({ path }: RouteMatch, text: string): boolean {
  if (path.type === "exact") return path.value === text;
  if (path.type === "regex") return new RegExp(`^(?:${path.value})$`).test(text);
  const segments = (value: string) => value.replace(/\/+$/, "").split("/");
  const wanted = segments(path.value);
  return segments(text).slice(0, wanted.length).join("/") === wanted.join("/");
}

function valueFits(wanted: ValueMatch, value: string): boolean {
  return wanted.type === "exact" ? value === wanted.value : new RegExp(`^(?:${wanted.value})$`).test(value);
}

function fits(match: RouteMatch, request: HttpRequest): boolean {
  const lines = (name: string) => request.headers.filter((_, i) => i % 2 === 1 && request.headers[i - 1] === name);
  const query = (name: string) => new URLSearchParams(request.search).getAll(name).slice(-1);
  return (
    pathFits(match, request.path) &&
    (match.method ?? request.method) === request.method &&
    match.headers.every((wanted) => lines(wanted.name).some((value) => valueFits(wanted, value))) &&
    match.query.every((wanted) => query(wanted.name).some((value) => valueFits(wanted, value)))
  );
}

/** Numbers and texts compared in this order, the smaller first. */
function sortKey({ route, match, bucket, matchIndex }: Found): (number | string)[] {
  const { path, method, headers, query } = match;
  return [
    bucket,
    path.type === "exact" ? 0 : 1,
    -path.value.replace(/\/+$/, "/").length,
    path.type === "regex" ? 1 : 0,
    method === undefined ? 1 : 0,
    -headers.length,
    -query.length,
    route.key,
    matchIndex,
  ];
}

function compare(a: Found, b: Found): number {
  const left = sortKey(a);
  const right = sortKey(b);
  const at = left.findIndex((value, i) => value !== right[i]);
  if (at === -1) return 0;
  return (left[at] ?? 0) < (right[at] ?? 0) ? -1 : 1;
}

function naive(routes: readonly Route[], request: HttpRequest, host: string): Found | undefined {
  const all: Found[] = [];
  for (const route of routes)
    for (const hostname of route.hostnames.length === 0 ? ["*"] : route.hostnames) {
      const bucket = bucketOf(hostname, host);
      if (bucket === undefined) continue;
      route.matches.forEach((match, matchIndex) => {
        all.push({ route, matchIndex, bucket, match });
      });
    }
  return all.sort(compare).find(({ match }) => fits(match, request));
}

// Few letters and short lists, so that routes and requests often meet and often tie.
const segment = fc.constantFrom("a", "b", "ab", "");
const path = fc.array(segment, { maxLength: 3, size: "small" }).map((segments) => `/${segments.join("/")}`);
const pattern = fc.oneof(
  path,
  path.map((text) => `= ${text}`),
  fc.constantFrom(
    "~ /.*",
    "~ /a?",
    "~ /a|/ab",
    "~ ^/a.*$",
    "~ /a/[ab]+",
    "~ /a(/.*)?",
    "~ /(a|b)/.",
    "~ a",
    "~ /ab*",
    "~ /aa{0,1}",
  ),
);
const value = fc.constantFrom("1", "2", "");
const valueMatch = fc.record({
  name: fc.constantFrom("x", "y"),
  type: fc.constantFrom<"exact" | "regex">("exact", "regex"),
  value: fc.constantFrom("1", "2", "12"),
});
const match: fc.Arbitrary<RouteMatch> = fc
  .record({
    path: pattern.map(pathMatch),
    method: fc.option(fc.constantFrom("GET", "PUT"), { nil: undefined, freq: 2 }),
    headers: fc.array(valueMatch, { maxLength: 2, size: "xsmall" }),
    query: fc.array(valueMatch, { maxLength: 2, size: "xsmall" }),
  })
  .map(({ method, ...rest }) => (method === undefined ? rest : { ...rest, method }));
const hostname = fc.constantFrom("*", "*", "a.b.c", "b.c", "c", "*.b.c", "*.c", "*.a.b.c", "*");
const routes = fc
  .array(
    fc.record({
      hostnames: fc.uniqueArray(hostname, { maxLength: 3 }),
      matches: fc.array(match, { minLength: 1, maxLength: 3 }),
    }),
    { maxLength: 12 },
  )
  .map((list) =>
    list.map((route, i): Route => {
      const key = `${"zbAa"[i % 4]}${i}`;
      return { key, name: key, namespace: "default", policies: {}, backends: [], ...route };
    }),
  );
const pairs = fc.array(fc.tuple(fc.constantFrom("x", "y", "z"), value), { maxLength: 4 });
const request: fc.Arbitrary<HttpRequest> = fc
  .record({ path, method: fc.constantFrom("GET", "PUT", "POST"), headers: pairs, query: pairs })
  .map(({ path, method, headers, query }) => ({
    method,
    scheme: "http",
    authority: "a.b.c",
    path,
    search: query.length === 0 ? "" : `?${query.map((pair) => pair.join("=")).join("&")}`,
    version: "HTTP/1.1",
    headers: headers.flat<string[][]>(),
  }));
const host = fc.constantFrom("a.b.c", "b.c", "c", "x.c", "x.b.c", "x.a.b.c", "other");

test("select finds what a sorted list finds", () => {
  let selections = 0;
  fc.assert(
    fc.property(routes, request, host, (routes, request, host) => {
      const expected = naive(routes, request, host);
      const actual = routerOf(...routes).select(request, host);
      assert.deepEqual(
        actual && [actual.route.key, actual.matchIndex],
        expected && [expected.route.key, expected.matchIndex],
      );
      if (actual !== undefined) selections++;
    }),
    { numRuns: 1500 },
  );
  assert.ok(selections > 300, `only ${selections} requests found a route: the generator is too wide`);
});

test("explain gives each route of the host one candidate with a true reason", () => {
  fc.assert(
    fc.property(routes, request, host, (routes, request, host) => {
      const router = routerOf(...routes);
      const selected = router.select(request, host);
      const { evaluatedRoutes, candidates } = router.explain(request, host, selected);
      assert.deepEqual(candidates.map(({ route }) => route.key).sort(), routes.map(({ key }) => key).sort());
      const winners = candidates.filter(({ reason }) => reason.clause === "selected").map(({ route }) => route.key);
      assert.deepEqual(winners, selected === undefined ? [] : [selected.route.key]);
      for (const candidate of candidates) {
        const route = routes.filter(({ key }) => key === candidate.route.key);
        const alone = naive(route, request, host);
        assert.equal(candidate.matched, alone !== undefined);
        const { clause } = candidate.reason;
        assert.equal(clause === "selected" || clause === "precedence", candidate.matched);
        assert.equal(clause === "host", !evaluatedRoutes.includes(candidate.route.key));
      }
    }),
    { numRuns: 1500 },
  );
});
