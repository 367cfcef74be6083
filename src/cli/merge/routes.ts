import {
  queryOf,
  type RouteRow,
  type RoutesAnswer,
  type RoutesQuery,
  type RouteView,
} from "../../admin/plane/answers.ts";
import { mostOf, sumOf } from "./replica.ts";

type Order = NonNullable<RoutesQuery["sort"]>;

/** Routes that a replica gives at a time, by default and at most. */
const LIMIT = 100;
const MOST = 1000;

/** Orders by traffic, which differ from replica to replica. */
const BY_TRAFFIC: { readonly [Each in Exclude<Order, "precedence" | "name">]: (row: RouteRow) => number } = {
  requests: ({ requests }) => requests,
  errors: ({ errors }) => errors,
  p50: ({ p50 = -1 }) => p50,
  p99: ({ p99 = -1 }) => p99,
  latest: ({ latest = "" }) => Date.parse(latest) || 0,
};

/**
 * The page to ask each replica for. If traffic decides the order, it is the first 1,000 routes, so that their sums are known; further routes
 * of a replica do not count. Otherwise it is the wanted page, so nothing is added.
 */
export function pageOfReplica(sort: string | undefined): Pick<RoutesQuery, "page" | "limit"> {
  return orderOf(sort) === undefined ? {} : { page: 1, limit: MOST };
}

/** `pageOfReplica` for the query of a page. */
export function routesQuery(query: URLSearchParams): URLSearchParams {
  return queryOf({ ...Object.fromEntries(query), ...pageOfReplica(query.get("sort") ?? undefined) });
}

/** A page of the routes of replicas, at least one: traffic summed, and the largest percentiles. */
export function mergeRoutes(answers: readonly RoutesAnswer[], query: URLSearchParams): RoutesAnswer {
  const alike = Map.groupBy(
    answers.flatMap(({ routes }) => routes),
    placeOf,
  );
  const rows = [...alike.values()].flatMap(mergeRows);
  const value = orderOf(query.get("sort") ?? undefined);
  const limit = Number(query.get("limit") ?? LIMIT);
  const before = value === undefined ? 0 : (Number(query.get("page") ?? 1) - 1) * limit;
  if (value !== undefined) rows.sort((a, b) => value(b) - value(a));
  return {
    generation: answers[0]?.generation ?? 0,
    since: earliest(answers),
    total: mostOf(answers, ({ total }) => total) ?? 0,
    found: mostOf(answers, ({ found }) => found) ?? 0,
    routes: rows.slice(before, before + limit),
  };
}

/** One route of replicas, at least one, wherever any of them has it. */
export function mergeRoute(answers: readonly RouteView[]): RouteView {
  const alike = Map.groupBy(
    answers.flatMap(({ places }) => places.shown),
    placeOf,
  );
  const shown = [...alike.values()].flatMap(mergeRows);
  return {
    generation: answers[0]?.generation ?? 0,
    since: earliest(answers),
    places: { total: Math.max(shown.length, mostOf(answers, ({ places }) => places.total) ?? 0), shown },
  };
}

function placeOf({ bind, listener, group, key }: RouteRow): string {
  return JSON.stringify([bind, listener, group, key]);
}

/** Since when the first of the replicas has counted. */
function earliest(answers: readonly { readonly since: string }[]): string {
  return answers.map(({ since }) => since).sort()[0] ?? "";
}

function mergeRows<Row extends RouteRow>(rows: readonly Row[]): Row[] {
  const [first] = rows;
  if (first === undefined) return [];
  const latest = rows
    .flatMap((row) => row.latest ?? [])
    .sort()
    .at(-1);
  const p50 = mostOf(rows, (row) => row.p50);
  const p99 = mostOf(rows, (row) => row.p99);
  return [
    {
      ...first,
      requests: sumOf(rows, ({ requests }) => requests),
      errors: sumOf(rows, ({ errors }) => errors),
      ...(p50 !== undefined && { p50 }),
      ...(p99 !== undefined && { p99 }),
      ...(latest !== undefined && { latest }),
    },
  ];
}

/** What decides the order, if it is traffic. */
function orderOf(sort = ""): ((row: RouteRow) => number) | undefined {
  const orders: Readonly<Record<string, (row: RouteRow) => number>> = BY_TRAFFIC;
  return Object.hasOwn(orders, sort) ? orders[sort] : undefined;
}
