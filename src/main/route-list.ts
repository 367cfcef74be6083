import { setImmediate as nextTurn } from "node:timers/promises";
import type { PlacedRoute, RouteRow, RoutesAnswer, RoutesQuery, RouteView } from "../admin/plane/answers.ts";
import { type Locate, withPlace } from "../base/origin.ts";
import { REDACTED, SECRET_PARAMETERS } from "../base/redaction.ts";
import { backendName } from "../ir/backend-name.ts";
import type { Ir, Listener, Route, RouteBackend, RouteMatch, TcpRoute, ValueMatch } from "../ir/ir.ts";
import { groupOwner, type PackedIr, type PackedRoutes, placeAt, routeAt } from "../ir/packed-ir.ts";
import { inPrecedence } from "../ir/route-order.ts";
import { seriesKey } from "../telemetry/counter-memory.ts";
import { UNKNOWN } from "../telemetry/custom-labels.ts";
import { REQUEST_LABELS } from "../telemetry/metric-table.ts";
import { Traffic } from "../telemetry/traffic.ts";
import { type LintedRoute, lintedRoute } from "../translation/linted-route.ts";
import { lintRoutes } from "../translation/route-lints.ts";
import { effectivePolicies } from "./effective-policies.ts";
import { type Counted, isFailed } from "./traffic-history.ts";

/** ISO 8601: when counting began. */
const BEGAN = new Date(performance.timeOrigin).toISOString();
/** Milliseconds without questions after which a list is dropped. */
const KEPT_MS = 60_000;
/** Places of one route that are shown. */
const MOST_PLACES = 32;
/** Routes that are read without a pause: 10,000 take 150 ms, and this thread has other work. */
const BATCH = 250;

/** What rows are made with, besides the configuration. */
interface RowSource {
  readonly generation: number;
  readonly counted: Counted;
  readonly locate: Locate;
  /** Names (lower-case) of headers whose values are secrets. */
  readonly hidden: ReadonlySet<string>;
}

type AnyRoute = Route | TcpRoute;

/** Who has routes: a listener, or a group. */
interface Owner {
  readonly of: Pick<RouteRow, "bind" | "listener" | "group">;
  /** What the labels of their requests begin with. */
  readonly labels: readonly string[];
  readonly hostname: string;
  /** Undefined: a group. */
  readonly listener: Listener | undefined;
  /** The routes of connections come first, then the packed ones. */
  readonly tcpRoutes: readonly TcpRoute[];
  readonly packed: PackedRoutes;
}

/** What is kept of a route: not itself, which is in shared memory. */
interface Entry {
  readonly owner: Owner;
  /** Among the routes of its owner. */
  readonly index: number;
  readonly key: string;
  readonly position: number;
  readonly name: string;
  readonly rule: string | undefined;
  /** Names of the groups that it delegates to. */
  readonly groups: readonly string[];
  /** What a search looks at, in lower case. */
  readonly text: string;
  readonly shadowedBy: readonly string[] | undefined;
  readonly counted: CountedRoutes;
}

/** Routes that metrics count together, because they have the same labels. */
interface CountedRoutes {
  readonly number: number;
  routes: number;
}

/** An entry with its requests. */
interface Seen {
  readonly entry: Entry;
  readonly traffic: Traffic | undefined;
}

type Order = NonNullable<RoutesQuery["sort"]>;

/** What routes are sorted by, the largest first; the others are sorted by what does not change. */
const SORTED_BY: { readonly [Each in Order]?: (traffic: Traffic) => number | undefined } = {
  requests: ({ requests }) => requests,
  errors: ({ errors }) => errors,
  p50: (traffic) => traffic.quantile(0.5),
  p99: (traffic) => traffic.quantile(0.99),
  latest: ({ latest }) => latest,
};

/** Keeps the list of one configuration: the first question makes it, and a minute without questions drops it. */
export class RouteLists {
  #made: { readonly configuration: PackedIr; readonly list: Promise<RouteList> } | undefined;
  #timer: NodeJS.Timeout | undefined;

  of(configuration: PackedIr): Promise<RouteList> {
    if (this.#made?.configuration !== configuration) this.#made = { configuration, list: RouteList.of(configuration) };
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#made = undefined;
    }, KEPT_MS).unref();
    return this.#made.list;
  }
}

/** All routes of a configuration in the order in which they get requests, with what depends on nothing but the configuration. */
class RouteList {
  readonly #frame: Ir;
  /** Keys of the backends that routes name. */
  readonly #named: ReadonlySet<string>;
  readonly #entries: readonly Entry[];
  /** By labels. */
  readonly #counted: ReadonlyMap<string, CountedRoutes>;
  /** The number of the routes that a series counts for: joining its labels each time would take longer than all else. */
  readonly #numberOf = new WeakMap<readonly string[], number>();

  private constructor(frame: Ir, entries: readonly Entry[], counted: ReadonlyMap<string, CountedRoutes>) {
    this.#frame = frame;
    this.#named = new Set(frame.backends.map(({ key }) => key));
    this.#entries = entries;
    this.#counted = counted;
  }

  static async of(configuration: PackedIr): Promise<RouteList> {
    const counted = new Map<string, CountedRoutes>();
    const entries: Entry[] = [];
    let read = 0;
    for (const owner of ownersIn(configuration)) {
      const routes: AnyRoute[] = [];
      const linted: LintedRoute[] = [];
      for (let index = 0; index < owner.tcpRoutes.length + owner.packed.count; index++) {
        const route = routeOf(owner, index);
        routes.push(route);
        linted.push(lintedRoute(route, owner.hostname));
        if (++read % BATCH === 0) await nextTurn();
      }
      for (const entry of entriesOf(owner, routes, linted, counted)) entries.push(entry);
    }
    return new RouteList(configuration.frame, entries, counted);
  }

  page(
    {
      search = "",
      listener,
      sort = "precedence",
      page,
      limit,
    }: RoutesQuery & { readonly page: number; readonly limit: number },
    source: RowSource,
  ): RoutesAnswer {
    const traffic = this.#traffic(source.counted);
    const wanted = search.toLowerCase();
    const found = this.#entries.flatMap((entry): Seen[] =>
      entry.text.includes(wanted) && (listener === undefined || entry.owner.listener?.key === listener)
        ? [{ entry, traffic: traffic[entry.counted.number] }]
        : [],
    );
    return {
      generation: source.generation,
      since: BEGAN,
      total: this.#entries.length,
      found: found.length,
      routes: sorted(found, sort)
        .slice((page - 1) * limit, page * limit)
        .map((seen) => this.#row(seen, source)),
    };
  }

  /** The route with this key and its policies; undefined for an unknown key. */
  one(key: string, source: RowSource): RouteView | undefined {
    const found = this.#entries.filter((entry) => entry.key === key);
    if (found.length === 0) return undefined;
    const traffic = this.#traffic(source.counted);
    const shown = found
      .slice(0, MOST_PLACES)
      .map((entry) => this.#placed({ entry, traffic: traffic[entry.counted.number] }, source));
    return { generation: source.generation, since: BEGAN, places: { total: found.length, shown } };
  }

  #placed(seen: Seen, source: RowSource): PlacedRoute {
    const { owner, index } = seen.entry;
    const { listener } = owner;
    const { group } = owner.of;
    const route = routeOf(owner, index);
    const context = { containers: this.#frame, ...source };
    const { origin } = route;
    const parents = group === undefined ? [] : this.#entries.filter(({ groups }) => groups.includes(group));
    return {
      ...this.#row(seen, source),
      ...(group !== undefined && {
        parents: parents.map(({ key, name, rule }) => ({ key, name, ...(rule !== undefined && { rule }) })),
      }),
      policies: {
        ...(listener !== undefined && {
          gateway: effectivePolicies("gateway", listener, { origin: listener.origin, own: ["policies"] }, context),
        }),
        route: "policies" in route ? effectivePolicies("route", route, { origin, own: ["policies"] }, context) : [],
      },
      backendPolicies: route.backends.map((backend, at) =>
        effectivePolicies("backend", backend, { origin, own: ["backends", at, "policies"] }, context),
      ),
    };
  }

  #row({ entry, traffic }: Seen, { hidden, locate }: RowSource): RouteRow {
    const { owner, index, key, position, name, rule, shadowedBy, counted } = entry;
    const route = routeOf(owner, index);
    const [p50, p99] = [traffic?.quantile(0.5), traffic?.quantile(0.99)];
    const row: RouteRow = {
      key,
      name,
      ...(rule !== undefined && { rule }),
      ...owner.of,
      position,
      hostnames: route.hostnames.length === 0 ? ["*"] : route.hostnames,
      matches: "matches" in route ? route.matches.map((match) => matchText(match, hidden)) : [],
      backends: route.backends.map((backend) => this.#backend(backend)),
      ...(route.origin && { origin: route.origin }),
      ...(shadowedBy && { shadowedBy }),
      requests: traffic?.requests ?? 0,
      errors: traffic?.errors ?? 0,
      ...(p50 !== undefined && p99 !== undefined && { p50, p99 }),
      ...(traffic !== undefined && traffic.latest > 0 && { latest: new Date(traffic.latest).toISOString() }),
      ...(counted.routes > 1 && { countedTogether: counted.routes }),
    };
    return withPlace(row, locate);
  }

  #backend(backend: RouteBackend): RouteRow["backends"][number] {
    const { key, target, weight } = backend;
    const shown = { name: nameOfBackend(backend), weight };
    if (target.type === "routeGroup") return shown;
    return { ...shown, key: target.type === "service" && !this.#named.has(key) ? `service/${target.key}` : key };
  }

  /** The requests by the number of their routes. */
  #traffic(counted: Counted): readonly (Traffic | undefined)[] {
    const found: Traffic[] = [];
    counted.eachRequestSeries((labels, series) => {
      let number = this.#numberOf.get(labels);
      if (number === undefined) {
        number = this.#counted.get(seriesKey([...OF_OWNER, ...OF_ROUTE].map((at) => labels[at] ?? "")))?.number ?? NONE;
        this.#numberOf.set(labels, number);
      }
      if (number === NONE) return;
      const traffic = found[number] ?? new Traffic();
      traffic.add(series, isFailed(labels));
      found[number] = traffic;
    });
    return found;
  }
}

/** In the order of the configuration, listeners first. */
function ownersIn({ frame: { binds, routeGroups }, routes }: PackedIr): Owner[] {
  const ofListeners = binds.flatMap((bind) =>
    bind.listeners.map((listener) => {
      const { key, name, gatewayNamespace, gatewayName, hostname, tcpRoutes } = listener;
      const of = { bind: bind.key, listener: name };
      const labels = [bind.key, `${gatewayNamespace}/${gatewayName}`, name];
      return [key, { of, labels, hostname, listener, tcpRoutes }] as const;
    }),
  );
  const ofGroups = routeGroups.map(({ name }) => {
    // Requests of a group are counted wherever they come from.
    const labels = OF_OWNER.map(() => UNKNOWN);
    const of = { group: name };
    return [groupOwner(name), { of, labels, hostname: "", listener: undefined, tcpRoutes: [] }] as const;
  });
  const owners = new Map<string, Omit<Owner, "packed">>([...ofListeners, ...ofGroups]);
  return routes.flatMap((packed): Owner[] => {
    const owner = owners.get(packed.owner);
    return owner === undefined ? [] : [{ ...owner, packed }];
  });
}

function routeOf({ tcpRoutes, packed }: Owner, index: number): AnyRoute {
  const at = index - tcpRoutes.length;
  return tcpRoutes[index] ?? { ...routeAt(packed, at), ...placeAt(packed, at) };
}

/** The entries of one owner in the order of precedence. Adds their labels to `counted`. */
function entriesOf(
  owner: Owner,
  routes: readonly AnyRoute[],
  linted: readonly LintedRoute[],
  counted: Map<string, CountedRoutes>,
): Entry[] {
  const indexes = new Map(routes.map((route, index) => [route, index]));
  const winners = new Map<AnyRoute, readonly string[]>();
  for (const { route, code, found } of lintRoutes(owner.listener?.policies, linted, (winner) => nameOf(winner.route)))
    if (code === "shadowed-route") winners.set(route, found[0]);
  return inPrecedence(routes).map((route, place) => {
    const { key, ruleName: rule } = route;
    const name = nameOf(route);
    const labels = seriesKey([...owner.labels, name, rule ?? UNKNOWN]);
    const counts = counted.get(labels) ?? { number: counted.size, routes: 0 };
    counted.set(labels, counts);
    counts.routes++;
    return {
      owner,
      index: indexes.get(route) ?? 0,
      key,
      position: place + 1,
      name,
      rule,
      groups: route.backends.flatMap(({ target }) => (target.type === "routeGroup" ? [target.name] : [])),
      text: searchText(owner, route),
      shadowedBy: winners.get(route),
      counted: counts,
    };
  });
}

/** The number of a series that counts for no route. */
const NONE = -1;
/** Where labels name the owner of a route, then the route. */
const OF_OWNER = (["bind", "gateway", "listener"] as const).map((label) => REQUEST_LABELS.indexOf(label));
const OF_ROUTE = (["route", "route_rule"] as const).map((label) => REQUEST_LABELS.indexOf(label));

/** Those that are equal stay in the order of precedence. */
function sorted(list: readonly Seen[], order: Order): readonly Seen[] {
  if (order === "name")
    return list.toSorted(({ entry: a }, { entry: b }) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  const value = SORTED_BY[order];
  if (value === undefined) return list;
  // Once for each, because comparing computes quantiles often.
  return list
    .map((seen) => ({ seen, value: (seen.traffic && value(seen.traffic)) ?? -1 }))
    .sort((a, b) => b.value - a.value)
    .map(({ seen }) => seen);
}

function nameOf({ namespace, name }: AnyRoute): string {
  return `${namespace}/${name}`;
}

/** Without values of headers and parameters: who may search must not find out what is redacted. */
function searchText({ of: { bind, listener, group } }: Owner, route: AnyRoute): string {
  const paths = "matches" in route ? route.matches.map(({ path, method }) => `${method ?? ""} ${path.value}`) : [];
  const backends = route.backends.map(nameOfBackend);
  const names = [route.key, nameOf(route), route.ruleName, bind, listener, group];
  return [...names, ...route.hostnames, ...paths, ...backends]
    .filter((part) => part !== undefined)
    .join("\n")
    .toLowerCase();
}

const PATHS = { exact: "path", pathPrefix: "path prefix", regex: "path pattern" } as const;

/** `path prefix /api, method GET, header x-canary = true` */
function matchText({ path, method, headers, query }: RouteMatch, hidden: ReadonlySet<string>): string {
  const parts = [`${PATHS[path.type]} ${path.value}`];
  if (method !== undefined) parts.push(`method ${method}`);
  for (const header of headers) parts.push(`header ${valueText(header, hidden.has(header.name.toLowerCase()))}`);
  for (const parameter of query) parts.push(`parameter ${valueText(parameter, SECRET_PARAMETERS.has(parameter.name))}`);
  return parts.join(", ");
}

function valueText({ name, type, value }: ValueMatch, isSecret: boolean): string {
  return `${name} ${type === "exact" ? "=" : "matches"} ${isSecret ? REDACTED : value}`;
}

function nameOfBackend(backend: RouteBackend): string {
  const { target } = backend;
  return target.type === "routeGroup" ? `group ${target.name}` : backendName(backend);
}
