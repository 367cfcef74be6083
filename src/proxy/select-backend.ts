import { GatewayError } from "../base/errors.ts";
import type { ExchangeState } from "./exchange-state.ts";

/** A request that comes this far needs a backend that can be called. */
export function selectBackend(exchange: ExchangeState): undefined {
  const { backend } = exchange;
  if (backend === undefined) throw new GatewayError("TG_NO_BACKENDS");
  exchange.backendSelected = true;
  const { type } = backend.target;
  if (backend.dynamic !== undefined) exchange.dynamicTarget = backend.dynamic.read(exchange.variables);
  if (backend.balancer !== undefined || type === "dynamic" || type === "internal") return undefined;
  throw new GatewayError(type === "invalid" ? "TG_BACKEND_MISSING" : "TG_BACKEND_TYPE");
}
