/** Which backend is called: the choice by weight, and whether HTTP, TCP or UDP can be sent to it. */
import { GatewayError } from "../../base/errors.ts";
import type { Target } from "../../upstream/settings/target.ts";
import type { CompiledBackend } from "../compile/compiled.ts";
import type { Exchange } from "../exchange/exchange.ts";
import { Retries } from "../exchange/retries.ts";
import type { Services, Split } from "../services/services.ts";

/** The kinds of target that each protocol can be sent to. */
const SERVED: Readonly<Record<"http" | "tcp" | "udp", ReadonlySet<Target["type"]>>> = {
  http: new Set(["static", "unix", "service", "pool", "dynamic", "internal"]),
  tcp: new Set(["static", "unix", "service", "pool", "dynamic"]),
  udp: new Set(["static", "service", "pool"]),
};

/** The phase `select-backend`: checks that the chosen backend can be called. Each attempt begins here, with the same request. */
export function selectBackend(
  exchange: Pick<Exchange, "policyState" | "request" | "retries" | "selected" | "variables">,
): undefined {
  const { selected, policyState } = exchange;
  if (policyState.retry !== undefined) {
    exchange.retries ??= new Retries(policyState.retry, exchange.request);
    exchange.retries.restore(exchange.request);
  }
  const backend = callable(selected.backend, "http");
  selected.reachedBackend = true;
  if (backend.dynamic !== undefined) selected.dynamicTarget = backend.dynamic.read(exchange.variables);
}

/** Returns the backend if `protocol` can call it. Throws TG_NO_BACKENDS for undefined, TG_BACKEND_MISSING for an invalid target, else TG_BACKEND_TYPE. */
export function callable(backend: CompiledBackend | undefined, protocol: keyof typeof SERVED): CompiledBackend {
  if (backend === undefined) throw new GatewayError("TG_NO_BACKENDS");
  const { target } = backend;
  if (SERVED[protocol].has(target.type)) return backend;
  if (target.type !== "invalid") throw new GatewayError("TG_BACKEND_TYPE");
  throw new GatewayError("TG_BACKEND_MISSING", target.reference === "" ? undefined : target.reference);
}

/** Whether a request can be sent to a backend now: it has an endpoint, or needs none. */
export function canServe({ balancer, target }: CompiledBackend): boolean {
  return SERVED.http.has(target.type) && (balancer === undefined || balancer.endpoints.length > 0);
}

/** Weighted random choice, unless `chooseBackend` makes it; undefined when no backend has weight. */
export function pick(
  split: Split & { readonly backends: readonly CompiledBackend[]; readonly totalWeight: number },
  { random, chooseBackend }: Pick<Services, "random" | "chooseBackend">,
): CompiledBackend | undefined {
  const { backends, totalWeight } = split;
  if (totalWeight === 0) return undefined;
  if (backends.length === 1) return backends[0];
  if (chooseBackend !== undefined) return backends[chooseBackend(split)];
  let at = random() * totalWeight;
  for (const backend of backends) {
    at -= backend.weight;
    if (at < 0) return backend;
  }
  return undefined;
}
