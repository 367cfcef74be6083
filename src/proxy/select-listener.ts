import { GatewayError } from "../base/errors.ts";
import { hostOf } from "../http/message.ts";
import type { TlsSession } from "../http/transport.ts";
import type { CompiledListener } from "./compiled.ts";
import type { ExchangeState } from "./exchange-state.ts";

/** The listener of the bind whose hostname fits best: that of the request, with TLS that of the handshake (reference 2.1). */
export function selectListener(x: ExchangeState): undefined {
  x.host = hostOf(x.request.authority);
  const { tls } = x.downstream;
  x.listener = tls === undefined ? x.bind.listeners.find(x.host) : listenerOf(x, tls);
  if (x.listener === undefined) {
    x.trace?.noListener(tls?.serverName ?? x.host, x.bind.listeners.entries);
    throw new GatewayError("TG_LISTENER_NOT_FOUND");
  }
  return undefined;
}

/** A connection outlives configurations: one that no longer asks for what the listener asks for has to be made anew. */
function listenerOf(x: ExchangeState, { serverName, clientCa }: TlsSession): CompiledListener | undefined {
  const listener = x.bind.listeners.find(serverName);
  if (listener === undefined) return undefined;
  if (listener.protocol === "HTTPS" && listener.terminator?.clientCa === clientCa) return listener;
  throw new GatewayError("TG_MISDIRECTED");
}

/**
 * Whether a request inside TLS belongs to the listener of its connection: else the client certificates and policies of the
 * listener that it names would be got round (RFC 9110 7.4).
 */
export function checkHost(x: ExchangeState): void {
  if (x.downstream.tls === undefined) return;
  const best = x.bind.listeners.find(x.host);
  if (best === undefined) {
    x.trace?.noListener(x.host, x.bind.listeners.entries);
    throw new GatewayError("TG_ROUTE_NOT_FOUND");
  }
  if (best !== x.listener) throw new GatewayError("TG_MISDIRECTED");
}
