/**
 * The stages that every client connection passes, the same for every kind of port and for connections inside tunnels
 * (docs/lifecycle.md, Before the first request). A stage examines the connection, adds what it finds to the arrival, and calls the
 * next one. A stage that does not apply costs one call. At the end, bind-server.ts serves the connection.
 */
import type { TransportHandler } from "../../net/transport.ts";
import type { Arrival, Ingress, Next } from "./arrival.ts";
import { checkAddress } from "./ip-access.ts";
import { authorizeNetwork } from "./network-authorization.ts";
import { readProxyHeader } from "./proxy-header.ts";
import { selectTlsListener } from "./tls-handshake.ts";

type Stage = (arrival: Arrival, ingress: Ingress, next: Next) => TransportHandler;

/**
 * In this order, because the PROXY header precedes TLS (its specification, section 2) and has the address, which is checked before the
 * client costs a handshake; rules about who may connect read the certificate of the handshake too.
 */
const STAGES: readonly Stage[] = [readProxyHeader, checkAddress, selectTlsListener, authorizeNetwork];

/** Begins the chain; `serve` ends it. Returns the handler of the connection's first bytes. */
export function admit(arrival: Arrival, ingress: Ingress, serve: Next): TransportHandler {
  return enter(0, arrival, ingress, serve);
}

/** The same for a client whose address is known: without the first stage. */
export function admitKnown(arrival: Arrival, ingress: Ingress, serve: Next): TransportHandler {
  return enter(1, arrival, ingress, serve);
}

function enter(at: number, arrival: Arrival, ingress: Ingress, serve: Next): TransportHandler {
  const stage = STAGES[at];
  if (stage === undefined) return serve(arrival);
  return stage(arrival, ingress, (fuller) => enter(at + 1, fuller, ingress, serve));
}
