import { suggest } from "../../base/suggest.ts";
import type { Ir } from "../../ir/ir.ts";
import type { Problem } from "../../translation/problems/problem.ts";
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

  constructor({ binds, routeGroups, backends }: Ir) {
    const listeners = binds.flatMap((bind) => bind.listeners);
    const routes = [...listeners, ...routeGroups].flatMap((owner) => owner.routes);
    const used = [...routes, ...listeners.flatMap(({ tcpRoutes }) => tcpRoutes)].flatMap((route) => route.backends);
    for (const { key, target } of [...used, ...backends]) this.#hosts.set(key, hostOf(target) ?? key);
    this.#known = {
      listener: new Set(listeners.flatMap(({ key, name }) => [key, name])),
      route: new Set([...routes, ...listeners.flatMap(({ tcpRoutes }) => tcpRoutes)].map(({ key }) => key)),
      backend: new Set([...this.#hosts].flat()),
    };
  }

  /** Whether `name` is that of `actual`, a key or name of the configuration. */
  names(kind: PlaceKind, name: string, actual: string | null): boolean {
    if (actual === null) return false;
    return fits(name, actual) || (kind === "backend" && this.#hosts.get(actual) === name);
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

const MAX_NAMED = 5;

function fits(name: string, known: string): boolean {
  return known === name || known.endsWith(`/${name}`);
}

function hostOf(target: Target): string | undefined {
  return target.type === "static" || target.type === "unix" ? targetName(target) : undefined;
}
