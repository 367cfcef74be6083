import type { Target } from "../../ir/ir.ts";
import type { ConfigFile } from "../schema/config.ts";
import type { Path } from "./report.ts";
import { reportUnknown, type TargetContext, translateTarget } from "./target.ts";

/** Kinds that name a service which the gateway asks. */
const CALLING: ReadonlySet<string> = new Set(["extAuthz", "extProc", "remoteRateLimit"]);

interface Named {
  readonly host?: string | undefined;
  readonly service?: { readonly name: string; readonly port: number } | undefined;
  readonly backend?: string | undefined;
}

type Backends = ConfigFile["backends"];

/** Finds the services that policies name as `host`, `service` or `backend`. */
export class CalledTargets {
  readonly #backends: ReadonlyMap<string, Backends[number]>;
  readonly #context: TargetContext;

  constructor(
    backends: Backends,
    services: TargetContext["services"],
    report: TargetContext["report"],
    incomplete: TargetContext["incomplete"],
  ) {
    this.#backends = new Map(backends.map((each) => [each.name, each]));
    this.#context = { services, routeGroups: new Set(), report, incomplete };
  }

  /** A policy with `target` in the place of the three; what they name and is not there is reported. */
  fill(kind: string, policy: unknown, path: Path): unknown {
    if (kind === "requestMirror") return [policy].flat().map((each, i) => this.#mirror(each, i, policy, path));
    if (!CALLING.has(kind) || typeof policy !== "object" || policy === null) return policy;
    if ("conditional" in policy) {
      const list = policy.conditional as readonly unknown[];
      return { conditional: list.map((each, i) => this.fill(kind, each, [...path, "conditional", i])) };
    }
    const { host, service, backend, ...others } = policy as Named;
    return withoutUndefined({ target: this.find({ host, service, backend }, path), ...others });
  }

  /** One place of `requestMirror`, which may be a list of them. */
  #mirror(input: unknown, index: number, policy: unknown, path: Path): unknown {
    const { backend, percentage } = input as { readonly backend: Named; readonly percentage: number };
    const at = Array.isArray(policy) ? [...path, index, "backend"] : [...path, "backend"];
    return { target: this.find(backend, at), percentage };
  }

  /** What a named backend has in the configuration; undefined when there is none. */
  policiesOf(backend: string | undefined): Backends[number]["policies"] {
    return backend === undefined ? undefined : this.#named(backend)?.policies;
  }

  #named(backend: string): Backends[number] | undefined {
    return this.#backends.get(backend.replace(/^\//, ""));
  }

  find({ host, service, backend }: Named, path: Path): Target {
    const set = Object.entries({ host, service, backend }).filter(([, value]) => value !== undefined);
    if (set.length !== 1) {
      const message =
        set.length === 0
          ? "one of host, service, backend is required"
          : `only one of ${set.map(([name]) => name).join(", ")} may be set`;
      this.#context.report(path, { message });
      return { type: "invalid", reference: "" };
    }
    if (backend === undefined)
      return translateTarget({ host, service, backend, dynamic: undefined }, path, this.#context);
    const at = [...path, "backend"];
    const named = this.#named(backend);
    if (named === undefined) {
      const known = [...this.#backends.keys()].map((each) => `/${each}`);
      reportUnknown("backend", "backends", backend, known, at, this.#context);
      return { type: "invalid", reference: backend };
    }
    if (named.host !== undefined)
      // What is wrong with the backend is reported where it stands.
      return translateTarget({ ...named, service: undefined, backend: undefined }, at, {
        ...this.#context,
        report: () => {},
      });
    this.#context.report(at, {
      message: `${backend} has no fixed address, and a service needs one`,
      expected: "a backend with host",
    });
    return { type: "invalid", reference: backend };
  }
}

function withoutUndefined(value: object): object {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined));
}
