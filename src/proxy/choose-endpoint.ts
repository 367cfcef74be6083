import type { Endpoint } from "../upstream/endpoint.ts";
import type { CompiledBackend } from "./compiled.ts";
import type { Exchange } from "./exchange.ts";

/** The endpoint of one attempt; undefined when none is left to choose. */
export function chooseEndpoint(exchange: Exchange, backend: CompiledBackend): Endpoint | undefined {
  const { balancer, affinity, target } = backend;
  if (balancer !== undefined) return balancer.choose(affinity?.read(exchange.variables));
  if (target.type !== "internal") {
    const { authority, scheme } = exchange.request;
    const { connection } = backend;
    const secure = scheme === "https" || connection?.settings.tls !== undefined;
    return exchange.services.dynamic(exchange.selected.dynamicTarget || authority, secure ? 443 : 80, connection);
  }
  // A path in the configuration stands for one endpoint of the admin API; parameters are the client's.
  if (target.path !== "forward") exchange.request.path = target.path;
  return exchange.services.internal();
}

/** What traces and the log call an endpoint: where the admin API listens says nothing. */
export function endpointName({ target }: CompiledBackend, endpoint: Endpoint): string {
  return target.type === "internal" ? "internal" : endpoint.pool.name;
}
