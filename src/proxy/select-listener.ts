import { GatewayError } from "../base/errors.ts";
import { hostOf } from "../http/message.ts";
import type { TlsSession } from "../net/transport.ts";
import type { CompiledListener } from "./compiled.ts";
import type { ExchangeState } from "./exchange-state.ts";

/** The listener of the bind whose hostname fits best: that of the request, with TLS that of the handshake (reference 2.1). */
export function selectListener(exchange: ExchangeState): undefined {
  exchange.host = hostOf(exchange.request.authority);
  const { tls } = exchange.downstream.connection;
  exchange.listener = tls === undefined ? exchange.bind.listeners.find(exchange.host) : listenerOf(exchange, tls);
  if (exchange.listener === undefined) {
    exchange.trace?.noListener(tls?.serverName ?? exchange.host, exchange.bind.listeners.entries);
    throw new GatewayError("TG_LISTENER_NOT_FOUND");
  }
  return undefined;
}

/** A connection outlives configurations: one that no longer asks for what the listener asks for has to be made anew. */
function listenerOf(exchange: ExchangeState, { serverName, clientCa }: TlsSession): CompiledListener | undefined {
  const listener = exchange.bind.listeners.find(serverName);
  if (listener === undefined) return undefined;
  if (listener.protocol === "HTTPS" && listener.terminator?.clientCa === clientCa) return listener;
  throw new GatewayError("TG_MISDIRECTED");
}

/**
 * Whether a request inside TLS belongs to the listener of its connection: else the client certificates and policies of the
 * listener that it names would be got round (RFC 9110 7.4).
 */
export function checkHost(exchange: ExchangeState): void {
  if (exchange.downstream.connection.tls === undefined) return;
  const best = exchange.bind.listeners.find(exchange.host);
  if (best === undefined) {
    exchange.trace?.noListener(exchange.host, exchange.bind.listeners.entries);
    throw new GatewayError("TG_ROUTE_NOT_FOUND");
  }
  if (best !== exchange.listener) throw new GatewayError("TG_MISDIRECTED");
}
