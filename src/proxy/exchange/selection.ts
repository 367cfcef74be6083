/** What phases 2 to 6 choose for a request. */
import { type CompiledChain, NO_POLICIES } from "../../policies/compile.ts";
import type { CompiledBackend, CompiledListener, CompiledRoute } from "../compile/compiled.ts";
import type { Selected } from "../match/router.ts";

const NO_ROUTES: readonly CompiledRoute[] = Object.freeze([]);

export class Selection {
  /** Host of the request, lower-case, without port. */
  host = "";
  listener: CompiledListener | undefined;
  route: CompiledRoute | undefined;
  /** The routes that delegated to it, the outermost first. */
  parents: readonly CompiledRoute[] = NO_ROUTES;
  /** The route's policies, merged with those of the routes that delegated to it. */
  routePolicies: CompiledChain = NO_POLICIES;
  /** Which of the route's matches selected it. */
  match: Selected<CompiledRoute> | undefined;
  /** Chosen with the route; a policy or a retry may choose another one. */
  backend: CompiledBackend | undefined;
  /** The endpoint of the backend that a policy prefers, by its name. */
  preferredEndpoint: string | undefined;
  /** No policy of the gateway or the route has responded: metrics count the request for the backend. */
  reachedBackend = false;
  /** Authority from the target expression of a `dynamic` backend; empty = that of the request. */
  dynamicTarget = "";

  /** The route that has the backends, with the policies in effect for it. */
  takeRoute(route: CompiledRoute, backend: CompiledBackend | undefined, policies: CompiledChain): void {
    this.route = route;
    this.backend = backend;
    this.routePolicies = policies;
  }

  /** Another backend of the route, for the next attempt. */
  moveTo(backend: CompiledBackend): void {
    this.backend = backend;
    this.dynamicTarget = "";
  }

  /** See `PolicyContext`, as the two below. */
  preferEndpoint(name: string): boolean {
    const found = [this.backend, ...(this.route?.backends ?? [])].find((each) => each?.balancer?.find(name));
    if (found === undefined) return false;
    this.backend = found;
    this.preferredEndpoint = name;
    return true;
  }

  get matchedPrefix(): string | undefined {
    return this.match?.matchedPrefix;
  }

  get matchedPath(): string {
    if (this.match === undefined) return "/";
    const { matchedPrefix, path, literal } = this.match;
    if (matchedPrefix !== undefined) return matchedPrefix;
    return path.type === "exact" ? path.value : literal.slice(0, literal.lastIndexOf("/")) || "/";
  }
}
