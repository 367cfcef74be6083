import { GatewayError } from "../base/errors.ts";
import type { ExchangeState } from "./exchange-state.ts";

/** A request that comes this far needs a backend that can be called. */
export function selectBackend(x: ExchangeState): undefined {
  const { backend } = x;
  if (backend === undefined) throw new GatewayError("TG_NO_BACKENDS");
  if (backend.balancer !== undefined) return undefined;
  if (backend.target.type === "invalid") throw new GatewayError("TG_BACKEND_MISSING");
  if (backend.target.type !== "dynamic") throw new GatewayError("TG_BACKEND_TYPE");
  return undefined;
}
