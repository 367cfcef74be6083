/** What is said to be shadowed, against the router that serves requests. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../../test/helpers/property.ts";
import type { HttpRouteMatch, HttpRouteRule } from "../../../kube/objects.ts";
import { requestTo, routerOf } from "../../../proxy/match/fixtures/routes.ts";
import { cluster } from "../fixtures/cluster.ts";
import { gatewayState } from "../gateway-state.ts";
import { routeFindings } from "./route-findings.ts";

const HOSTS = ["a.example.com", "*.example.com"];
const REQUESTS = ["a.example.com", "b.example.com", "other.example.org"].flatMap((host) =>
  ["/", "/a", "/a/", "/a/b", "/other"].flatMap((path) =>
    ["GET", "PUT", "POST"].flatMap((method) =>
      [[], ["x", "1"], ["y", "1"], ["x", "1", "y", "1"]].map((headers) => ({
        host,
        request: requestTo(path, { method, headers }),
      })),
    ),
  ),
);

/** Up to five routes over these paths. */
function routesOver(...paths: readonly string[]) {
  const match: fc.Arbitrary<HttpRouteMatch> = fc.record(
    {
      path: fc.record({
        type: fc.constantFrom("PathPrefix" as const, "Exact" as const),
        value: fc.constantFrom(...paths),
      }),
      headers: fc.subarray([
        { name: "X", value: "1" },
        { name: "y", value: "1" },
      ]),
      method: fc.constantFrom("GET", "PUT"),
    },
    { requiredKeys: ["path", "headers"] },
  );
  const rule = fc.record({ matches: fc.array(match, { minLength: 1, maxLength: 3 }) });
  const route = fc.record({
    hostnames: fc.subarray(HOSTS),
    rules: fc.array(rule, { minLength: 1, maxLength: 3 }),
    day: fc.constantFrom("01", "02"),
  });
  return fc.array(route, { minLength: 1, maxLength: 5 });
}

interface TestRoute {
  readonly hostnames: readonly string[];
  readonly rules: readonly HttpRouteRule[];
  readonly day: string;
}

/** The rules that are said to be shadowed, and those that none of the requests reaches: `route-0.01`. */
function compare(routes: readonly TestRoute[]): { readonly shadowed: string[]; readonly idle: string[] } {
  const graph = cluster({
    apiVersion: "",
    kind: "Gateway",
    metadata: { name: "web", namespace: "apps" },
    spec: { gatewayClassName: "tracegate", listeners: [{ name: "http", port: 80, protocol: "HTTP" }] },
  });
  for (const [i, { hostnames, rules, day }] of routes.entries())
    graph.set({
      apiVersion: "",
      kind: "HTTPRoute",
      metadata: { name: `route-${i}`, namespace: "apps", creationTimestamp: `2026-01-${day}T00:00:00Z` },
      spec: { parentRefs: [{ name: "web" }], hostnames, rules },
    });
  const resources = [...(graph.query(gatewayState, "apps/web")?.resources.values() ?? [])];
  const served = resources.flatMap((resource) => (resource.kind === "route" ? [resource.route] : []));
  const router = routerOf(...served);
  const reached = new Set(REQUESTS.map(({ host, request }) => router.select(request, host)?.route.key));
  const idle = served.flatMap(({ key }) => (reached.has(key) ? [] : [key.slice("apps/".length, -".http".length)]));
  const shadowed = Object.values(graph.query(routeFindings, "apps/web")).flatMap((findings = []) =>
    findings
      .filter(({ code }) => code === "shadowed-route")
      .map(({ object, text }) => {
        const number = /^spec\.rules\[(\d+)\]/.exec(text)?.[1] ?? "";
        return `${object.slice("HTTPRoute/apps/".length)}.${number.padStart(2, "0")}`;
      }),
  );
  return { shadowed: shadowed.sort(), idle: idle.sort() };
}

test("exactly the rules that no request reaches are shadowed", () => {
  fc.assert(
    fc.property(routesOver("/", "/a"), (routes) => {
      const { shadowed, idle } = compare(routes);
      assert.deepEqual(shadowed, idle);
    }),
    { numRuns: 150 },
  );
});

// `/a/` goes before `/a`, whatever conditions that has, so that more rules than these are never reached.
test("with trailing slashes, no rule is said to be shadowed that a request reaches", () => {
  fc.assert(
    fc.property(routesOver("/a", "/a/"), (routes) => {
      const { shadowed, idle } = compare(routes);
      assert.deepEqual(
        shadowed.filter((rule) => !idle.includes(rule)),
        [],
      );
    }),
    { numRuns: 150 },
  );
});
