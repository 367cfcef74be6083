import { suggest } from "../../base/suggest.ts";
import type { Ir, Listener, Route, TcpRoute } from "../../ir/ir.ts";
import { NO_POLICY_SET } from "../../policies/merge.ts";
import { shortRoute } from "../../trace/route-names.ts";
import { lintedRoute, meet } from "../../translation/linted-route.ts";
import { lintTexts } from "../../translation/problems/lint-table.ts";
import type { Problem } from "../../translation/problems/problem.ts";
import { lintRoutes } from "../../translation/route-lints.ts";
import { targetName } from "../../upstream/settings/pool-target.ts";
import type { Target } from "../../upstream/settings/target.ts";

/** What a case can name. */
type PlaceKind = "listener" | "route" | "backend";

/** The listeners, routes and backends of a configuration, as cases name them: by their key, or by its end after a `/`. */
export class Places {
  /** Keys and other names. */
  readonly #known: Readonly<Record<PlaceKind, ReadonlySet<string>>>;
  /** The `host:port` of a backend, by its key. */
  readonly #hosts = new Map<string, string>();
  readonly #listeners: readonly Listener[];
  readonly #owners: readonly RouteOwner[];
  readonly #routes: readonly { readonly owner: RouteOwner; readonly route: Route | TcpRoute }[];
  /** Why no request gets a route. Made when a case names a route. */
  #unreachable: ReadonlyMap<unknown, string> | undefined;

  constructor({ binds, routeGroups, backends }: Ir) {
    const listeners = binds.flatMap((bind) => bind.listeners);
    this.#listeners = listeners;
    const groups = routeGroups.map(({ routes }) => ({ hostname: "", policies: NO_POLICY_SET, routes, tcpRoutes: [] }));
    this.#owners = [...listeners, ...groups];
    this.#routes = this.#owners.flatMap((owner) =>
      [...owner.routes, ...owner.tcpRoutes].map((route) => ({ owner, route })),
    );
    const used = this.#routes.flatMap(({ route }) => route.backends);
    for (const { key, target } of [...used, ...backends]) this.#hosts.set(key, hostOf(target) ?? key);
    this.#known = {
      listener: new Set(listeners.flatMap(({ key, name }) => [key, name])),
      route: new Set(this.#routes.map(({ route }) => route.key)),
      backend: new Set([...this.#hosts].flat()),
    };
  }

  /** Whether `name` is that of `actual`, a key or name of the configuration. */
  names(kind: PlaceKind, name: string, actual: string | null): boolean {
    if (actual === null) return false;
    return fits(name, actual) || (kind === "backend" && this.#hosts.get(actual) === name);
  }

  /** The name by which a case can expect what has this key: of a backend its host, if it has one, of a route the end of its key. */
  nameOf(kind: PlaceKind, key: string | null): string | null {
    if (key === null || kind === "listener") return key;
    return kind === "route" ? shortRoute(key, [...this.#known.route]) : (this.#hosts.get(key) ?? key);
  }

  /** Why no request for this host gets what a name means, which the configuration has; undefined: one can. */
  unmet(kind: PlaceKind, name: string, host: string): Problem | undefined {
    if (kind === "backend") return undefined;
    const why = kind === "listener" ? this.#unmetListener(name, host) : this.#unmetRoute(name, host);
    return why === undefined ? undefined : { message: `no such request gets this ${kind}: ${why}` };
  }

  #unmetListener(name: string, host: string): string | undefined {
    const named = this.#listeners.filter((listener) => fits(name, listener.key) || listener.name === name);
    if (named.some(({ hostname }) => meet(host, hostname))) return undefined;
    return `it takes ${[...new Set(named.map(({ hostname }) => hostname))].join(", ")} only, not ${host}`;
  }

  #unmetRoute(name: string, host: string): string | undefined {
    const named = this.#routes.filter(({ route }) => fits(name, route.key));
    const forHost = named.filter(
      ({ route: { hostnames }, owner }) =>
        meet(host, owner.hostname) && (hostnames.length === 0 || hostnames.some((each) => meet(host, each))),
    );
    if (forHost.length === 0) {
      const hosts = named.flatMap(({ route, owner }) =>
        route.hostnames.length > 0 ? route.hostnames : owner.hostname,
      );
      return `it is for ${[...new Set(hosts)].join(", ")} only, not ${host}`;
    }
    this.#unreachable ??= unreachableRoutes(this.#owners);
    const reasons = forHost.map(({ route }) => this.#unreachable?.get(route));
    return reasons.every((reason) => reason !== undefined) ? reasons[0] : undefined;
  }

  /** What is wrong with a name that nothing has. */
  problemWith(kind: PlaceKind, name: string): Problem | undefined {
    const known = [...this.#known[kind]];
    if (known.some((each) => fits(name, each))) return undefined;
    const names = known.map((each) => each.slice(each.lastIndexOf("/") + 1));
    const suggestion = suggest(name, names);
    const message = `the configuration has no ${kind} ${JSON.stringify(name)}`;
    if (suggestion !== undefined) return { message, suggestion };
    const some = [...new Set(names)].slice(0, MAX_NAMED);
    return {
      message,
      expected:
        some.length === 0
          ? `null, because the configuration has no ${kind}`
          : `null, or a ${kind} such as ${some.join(", ")}`,
    };
  }
}

/** A listener or route group. */
interface RouteOwner extends Pick<Listener, "hostname" | "policies" | "routes" | "tcpRoutes"> {}

/** The routes that lints find unreachable, each with the text of the finding. */
function unreachableRoutes(owners: readonly RouteOwner[]): ReadonlyMap<unknown, string> {
  const found = new Map<unknown, string>();
  for (const { hostname, policies, routes, tcpRoutes } of owners) {
    const linted = [...routes, ...tcpRoutes].map((route) => lintedRoute(route, hostname));
    for (const finding of lintRoutes(policies, linted, ({ route }) => route.name))
      if (finding.code === "shadowed-route") found.set(finding.route, lintTexts(finding, "file").message);
  }
  return found;
}

const MAX_NAMED = 5;

function fits(name: string, known: string): boolean {
  return known === name || known.endsWith(`/${name}`);
}

function hostOf(target: Target): string | undefined {
  return target.type === "static" || target.type === "unix" ? targetName(target) : undefined;
}
