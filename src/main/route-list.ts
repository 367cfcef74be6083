import { setImmediate as nextTurn } from "node:timers/promises";
import type { RouteRow, RoutesAnswer, RoutesQuery } from "../admin/plane/answers.ts";
import { type Locate, withPlace } from "../base/origin.ts";
import { REDACTED, SECRET_PARAMETERS } from "../base/redaction.ts";
import { backendName } from "../ir/backend-name.ts";
import type { Listener, Route, RouteBackend, RouteMatch, TcpRoute, ValueMatch } from "../ir/ir.ts";
import { groupOwner, type PackedIr, type PackedRoutes, placeAt, routeAt } from "../ir/packed-ir.ts";
import { inPrecedence } from "../ir/route-order.ts";
import { NO_POLICY_SET } from "../policies/merge.ts";
import { seriesKey } from "../telemetry/counter-memory.ts";
import { UNKNOWN } from "../telemetry/custom-labels.ts";
import { REQUEST_LABELS } from "../telemetry/metric-table.ts";
import { Traffic } from "../telemetry/traffic.ts";
import { type LintedRoute, lintedRoute } from "../translation/linted-route.ts";
import { lintRoutes } from "../translation/route-lints.ts";
import { type Counted, isFailed } from "./traffic-history.ts";

/** Milliseconds after which a list is forgotten that nobody asks for. */
const KEPT_MS = 60_000;
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
  readonly policies: Listener["policies"];
  /** The routes of connections come first, then the packed ones. */
  readonly tcpRoutes: readonly TcpRoute[];
  readonly packed: PackedRoutes;
}

/** What is kept of a route: not itself, which is in shared memory. */
interface Entry {
  readonly owner: Owner;
  /** Among the routes of its owner. */
  readonly index: number;
  readonly position: number;
  readonly name: string;
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

const COMPARE: { readonly [Each in Order]: ((a: Seen, b: Seen) => number) | undefined } = {
  precedence: undefined,
  name: ({ entry: a }, { entry: b }) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0),
  requests: (a, b) => (b.traffic?.requests ?? 0) - (a.traffic?.requests ?? 0),
  errors: (a, b) => (b.traffic?.errors ?? 0) - (a.traffic?.errors ?? 0),
  p50: (a, b) => slowness(b, 0.5) - slowness(a, 0.5),
  p99: (a, b) => slowness(b, 0.99) - slowness(a, 0.99),
  latest: (a, b) => (b.traffic?.latest ?? 0) - (a.traffic?.latest ?? 0),
};

/** The list of one configuration at a time: made when somebody asks, and forgotten when nobody has for a minute. */
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
  readonly #entries: readonly Entry[];
  /** By labels. */
  readonly #counted: ReadonlyMap<string, CountedRoutes>;
  /** The number of the routes that a series counts for: joining its labels each time would take longer than all else. */
  readonly #numberOf = new WeakMap<readonly string[], number>();

  private constructor(entries: readonly Entry[], counted: ReadonlyMap<string, CountedRoutes>) {
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
    return new RouteList(entries, counted);
  }

  page(
    { search = "", sort = "precedence", page, limit }: RoutesQuery & { readonly page: number; readonly limit: number },
    source: RowSource,
  ): RoutesAnswer {
    const traffic = this.#traffic(source.counted);
    const wanted = search.toLowerCase();
    const found = this.#entries.flatMap((entry): Seen[] =>
      entry.text.includes(wanted) ? [{ entry, traffic: traffic[entry.counted.number] }] : [],
    );
    const compare = COMPARE[sort];
    if (compare !== undefined) found.sort(compare);
    return {
      generation: source.generation,
      since: new Date(performance.timeOrigin).toISOString(),
      total: this.#entries.length,
      found: found.length,
      routes: found.slice((page - 1) * limit, page * limit).map((seen) => this.#row(seen, source)),
    };
  }

  #row({ entry, traffic }: Seen, { hidden, locate }: RowSource): RouteRow {
    const { owner, index, position, name, shadowedBy, counted } = entry;
    const route = routeOf(owner, index);
    const [p50, p99] = [traffic?.quantile(0.5), traffic?.quantile(0.99)];
    const row: RouteRow = {
      key: route.key,
      name,
      ...(route.ruleName !== undefined && { rule: route.ruleName }),
      ...owner.of,
      position,
      hostnames: route.hostnames.length === 0 ? ["*"] : route.hostnames,
      matches: "matches" in route ? route.matches.map((match) => matchText(match, hidden)) : [],
      backends: route.backends.map((backend) => ({ name: nameOfBackend(backend), weight: backend.weight })),
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
    bind.listeners.map(({ key, name, gatewayNamespace, gatewayName, hostname, policies, tcpRoutes }) => {
      const of = { bind: bind.key, listener: name };
      const labels = [bind.key, `${gatewayNamespace}/${gatewayName}`, name];
      return [key, { of, labels, hostname, policies, tcpRoutes }] as const;
    }),
  );
  const ofGroups = routeGroups.map(({ name }) => {
    // Requests of a group are counted wherever they come from.
    const labels = OF_OWNER.map(() => UNKNOWN);
    return [
      groupOwner(name),
      { of: { group: name }, labels, hostname: "", policies: NO_POLICY_SET, tcpRoutes: [] },
    ] as const;
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
  for (const { route, code, found } of lintRoutes(owner.policies, linted, (winner) => nameOf(winner.route)))
    if (code === "shadowed-route") winners.set(route, found[0]);
  return inPrecedence(routes).map((route, place) => {
    const labels = seriesKey([...owner.labels, nameOf(route), route.ruleName ?? UNKNOWN]);
    const known = counted.get(labels) ?? { number: counted.size, routes: 0 };
    counted.set(labels, known);
    known.routes++;
    const text = searchText(owner, route);
    const name = nameOf(route);
    const shadowedBy = winners.get(route);
    return { owner, index: indexes.get(route) ?? 0, position: place + 1, name, text, shadowedBy, counted: known };
  });
}

/** The number of a series that counts for no route. */
const NONE = -1;
/** Where labels name the owner of a route, then the route. */
const OF_OWNER = (["bind", "gateway", "listener"] as const).map((label) => REQUEST_LABELS.indexOf(label));
const OF_ROUTE = (["route", "route_rule"] as const).map((label) => REQUEST_LABELS.indexOf(label));

function slowness({ traffic }: Seen, share: number): number {
  return traffic?.quantile(share) ?? -1;
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
