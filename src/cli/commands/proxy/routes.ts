import {
  type EffectivePolicy,
  type PlacedRoute,
  queryOf,
  ROUTE_ORDERS,
  type RouteRow,
  type RoutesAnswer,
  type RouteView,
  type WrittenPolicy,
} from "../../../admin/plane/answers.ts";
import { counted } from "../../../base/counted.ts";
import { formatOrigin } from "../../../base/origin.ts";
import { agoText, durationText } from "../../../report/recorded.ts";
import { DUMP_OUTPUT_OPTION, table } from "../../dump/dump.ts";
import { printMerged } from "../../merge/print-merged.ts";
import { pageOfReplica } from "../../merge/routes.ts";
import { adminResult } from "../../proxy/admin.ts";
import { RESOURCE, TARGET_OPTIONS } from "../../proxy/proxies.ts";
import { defineCommand } from "../../runner/define-command.ts";
import { openProxies } from "../open-proxies.ts";

export const routes = defineCommand({
  name: "routes",
  summary: "Show the routes in the order in which they get requests, with their traffic and policies",
  description: [
    "REQUESTS, ERRORS, P50, P99 and LATEST are those since the start of the gateway; `of 3: 17` are the requests of three routes, which metrics count together. In a cluster, traffic is the sum over all pods, and percentiles are the largest of any pod. See docs/routes.md.",
  ],
  argument: RESOURCE,
  options: {
    ...TARGET_OPTIONS,
    find: { type: "text", value: "text", summary: "Only routes with this text, such as a name, host, path or backend" },
    sort: {
      type: "text",
      value: "order",
      default: "precedence",
      choices: ROUTE_ORDERS,
      summary: "Sort by this, the largest first",
      invalid: (value) => `routes have no order "${value}"`,
    },
    limit: { type: "integer", value: "count", min: 1, max: 1000, default: 100, summary: "Show at most this many" },
    policies: {
      type: "text",
      value: "key",
      summary: "Show the policies in effect for the route with this key, which the json output has",
    },
    output: DUMP_OUTPUT_OPTION,
  },
  examples: [
    { does: "Which routes fail most", run: "routes --sort errors --limit 10" },
    { does: "The routes of a path, with all that is known about them", run: "routes --find /cart -o json" },
    {
      does: "Which policies apply to a route, and where each is written",
      run: "routes --policies default/default/bind/3000/web/default/cart",
    },
  ],
  async run(invocation, context) {
    const { find, sort, limit, policies, output } = invocation.options;
    await using proxies = await openProxies(invocation, context);
    const { signal } = context;
    if (policies !== undefined)
      return await printMerged(proxies, context, {
        endpoint: "/routes/",
        ask: (proxy) => adminResult(proxy, proxy.client.route(policies, { signal })),
        output,
        table: policyTables,
      });
    const order = ROUTE_ORDERS.find((each) => each === sort);
    const query = { search: find, sort: order, limit };
    return await printMerged(proxies, context, {
      endpoint: "/routes",
      query: queryOf(query),
      ask: (proxy) => adminResult(proxy, proxy.client.routes({ ...query, ...pageOfReplica(order) }, { signal })),
      output,
      table: routeTable,
    });
  },
});

/** A line for each route; below them how many are not shown. */
function routeTable({ routes, found }: RoutesAnswer): string {
  const areShadowed = routes.some(({ shadowedBy }) => shadowedBy !== undefined);
  const header = ["ROUTE", "AT", "HOSTS", "MATCHES", "BACKENDS", "REQUESTS", "ERRORS", "P50", "P99", "LATEST"];
  const rows = routes.map((route) => [
    ...routeCells(route),
    ...(areShadowed ? [route.shadowedBy?.join(", ") ?? ""] : []),
  ]);
  const left = found - routes.length;
  const others = left === 0 ? "" : `${counted(left, "more route")}\n`;
  return `${table([...header, ...(areShadowed ? ["SHADOWED BY"] : [])], rows)}${others}`;
}

function routeCells(route: RouteRow): string[] {
  const { name, rule, bind, listener, group, hostnames, matches, backends } = route;
  return [
    rule === undefined ? name : `${name} ${rule}`,
    group === undefined ? `${bind} ${listener}` : `group ${group}`,
    hostnames.join(", "),
    matches.join(" | "),
    backends.map(({ name, weight }) => (weight === 1 ? name : `${name} ×${weight}`)).join(", "),
    ...trafficCells(route),
  ];
}

/** Nothing for a route of connections, which have no requests. */
function trafficCells({ matches, requests, errors, p50, p99, latest, countedTogether }: RouteRow): string[] {
  if (matches.length === 0) return ["", "", "", "", ""];
  return [
    countedTogether === undefined ? String(requests) : `of ${countedTogether}: ${requests}`,
    String(errors),
    p50 === undefined ? "" : durationText(p50),
    p99 === undefined ? "" : durationText(p99),
    latest === undefined ? "" : agoText(latest),
  ];
}

/** The policies at each place of a route. */
function policyTables({ places: { total, shown } }: RouteView): string {
  const tables = shown.map((place) => `${placeText(place)}\n${policyTable(place)}`);
  const left = total - shown.length;
  return `${tables.join("\n")}${left === 0 ? "" : `${counted(left, "more place")}\n`}`;
}

function placeText({ name, rule, bind, listener, group }: PlacedRoute): string {
  const at = group === undefined ? `at ${bind} ${listener}` : `in the group ${group}`;
  return `${name}${rule === undefined ? "" : ` ${rule}`} ${at}`;
}

function policyTable({ policies: { gateway = [], route }, backends, backendPolicies }: PlacedRoute): string {
  const cells = (phase: string, list: readonly EffectivePolicy[]): string[][] =>
    list.map(({ kind, shadow, runs, from, replaced }) => [
      phase,
      shadow === true ? `${kind} (shadow)` : kind,
      runs.join(", "),
      from.map(writtenText).join(", "),
      replaced.map(writtenText).join(", "),
    ]);
  const rows = [
    ...cells("gateway", gateway),
    ...cells("route", route),
    ...backendPolicies.flatMap((list, index) => cells(`backend ${backends[index]?.name}`, list)),
  ];
  return table(["PHASE", "POLICY", "RUNS ON", "WRITTEN AT", "REPLACES"], rows);
}

function writtenText({ origin, attachedTo, rules }: WrittenPolicy): string {
  const written = `${attachedTo === undefined ? "" : `${attachedTo} `}${formatOrigin(origin)}`;
  return rules === undefined ? written : `${written} (${counted(rules, "rule")})`;
}
