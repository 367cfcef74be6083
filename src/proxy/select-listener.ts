import { GatewayError } from "../base/errors.ts";
import { hostOf } from "../http/message.ts";
import type { ExchangeState } from "./exchange-state.ts";

/** The listener of the bind whose hostname fits best (reference 2.1). */
export function selectListener(x: ExchangeState): undefined {
  x.host = hostOf(x.request.authority);
  x.listener = x.bind.listeners.find(x.host);
  if (x.listener === undefined) throw new GatewayError("TG_LISTENER_NOT_FOUND");
  return undefined;
}
