/** The phase `select-listener`, and the check that a request inside TLS stays with the listener of its handshake. */
import { type ErrorCode, GatewayError, type Why } from "../../base/errors.ts";
import { hostOf } from "../../http/message/message.ts";
import type { TlsSession } from "../../net/transport.ts";
import type { CompiledListener } from "../compile/compiled.ts";
import type { Exchange } from "../exchange/exchange.ts";
import { hostText } from "../match/reason.ts";

/** What the phase may read and set. */
type Selecting = Pick<Exchange, "bind" | "downstream" | "request" | "selected" | "trace">;

/**
 * Selects the listener whose hostname best fits the request's host or, with TLS, the server name of the handshake
 * (docs/lifecycle.md#2-select-listener). Begins the span even if none matches: such requests may be sampled too.
 */
export function selectListener(exchange: Selecting & Pick<Exchange, "span" | "startedAt" | "variables">): undefined {
  try {
    select(exchange);
  } finally {
    exchange.span = exchange.bind.tracing?.begin(exchange);
  }
}

function select(exchange: Selecting): void {
  const { selected, request, downstream } = exchange;
  const { tls } = downstream.connection;
  selected.host = hostOf(request.authority);
  selected.listener = tls === undefined ? plaintextListener(exchange) : listenerOf(exchange, tls);
  if (selected.listener !== undefined) return;
  throw noListener(exchange, tls?.serverName ?? selected.host, "TG_LISTENER_NOT_FOUND");
}

function noListener({ trace, bind }: Selecting, host: string, code: ErrorCode): GatewayError {
  const { entries } = bind.listeners;
  trace?.noListener(host, entries);
  const hostnames = entries.map(({ hostname }) => hostname);
  const why: Why = () => ({ text: hostText(host, hostnames) });
  return new GatewayError(code, undefined, undefined, { why });
}

/** A reload may have added TLS to the port since the connection was accepted; a plaintext request must not bypass it. */
function plaintextListener({ bind, selected }: Selecting): CompiledListener | undefined {
  const listener = bind.listeners.find(selected.host);
  if (listener !== undefined && listener.protocol !== "HTTP") throw new GatewayError("TG_MISDIRECTED");
  return listener;
}

/**
 * Connections outlive configurations. If the handshake of one did not request the client certificates that the listener now requires, its
 * requests get 421, so that the client connects again.
 */
function listenerOf(exchange: Selecting, { serverName, clientValidation }: TlsSession): CompiledListener | undefined {
  const listener = exchange.bind.listeners.find(serverName);
  if (listener === undefined) return undefined;
  if (listener.protocol === "HTTPS" && listener.terminator?.clientValidation === clientValidation) return listener;
  throw new GatewayError("TG_MISDIRECTED");
}

/**
 * Rejects a request inside TLS that names a listener other than that of its connection: otherwise it would bypass the client
 * certificates and policies of the listener that it names (RFC 9110 7.4).
 */
export function checkHost(exchange: Selecting): void {
  const { downstream, bind, selected } = exchange;
  if (downstream.connection.tls === undefined) return;
  const best = bind.listeners.find(selected.host);
  if (best === undefined) throw noListener(exchange, selected.host, "TG_ROUTE_NOT_FOUND");
  if (best !== selected.listener) throw new GatewayError("TG_MISDIRECTED");
}
