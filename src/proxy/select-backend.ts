import { GatewayError } from "../base/errors.ts";
import type { ExchangeState } from "./exchange-state.ts";

/** A request that comes this far needs a backend that can be called. */
export function selectBackend(x: ExchangeState): undefined {
  const { backend } = x;
  if (backend === undefined) throw new GatewayError("TG_NO_BACKENDS");
  x.backendSelected = true;
  const { type } = backend.target;
  if (backend.dynamic !== undefined) x.dynamicTarget = backend.dynamic.read(x.variables);
  if (backend.balancer !== undefined || type === "dynamic" || type === "internal") return undefined;
  throw new GatewayError(type === "invalid" ? "TG_BACKEND_MISSING" : "TG_BACKEND_TYPE");
}
