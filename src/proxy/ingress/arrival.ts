/** A connection between accept and the first byte that its protocol reads. */
import { ERRORS, type ErrorCode } from "../../base/errors.ts";
import type { Origin } from "../../base/origin.ts";
import type { Rostered } from "../../base/roster.ts";
import type { Sweepable } from "../../base/sweeper.ts";
import type { NetworkMetadata } from "../../http/stream.ts";
import type { StageOwner } from "../../net/connection-stage.ts";
import type { Transport, TransportHandler } from "../../net/transport.ts";
import type { Rejection } from "../../telemetry/access-log.ts";
import type { ConnectionSeries } from "../../telemetry/metrics.ts";
import type { CompiledBind, CompiledListener } from "../compile/compiled.ts";
import type { Services } from "../services/services.ts";

/** A connection as its bind knows it from accept to close, in every stage and protocol. */
export interface LiveConnection {
  readonly remoteAddress: string;
  readonly remotePort: number;
  /** What it is doing, for the task dump. */
  readonly activity: { readonly state: string; readonly ageMs: number };
  /** Closes the connection if it carries no stream; otherwise it closes after its last one. */
  closeIfIdle(): void;
  /** Asks the client to connect again; connections without requests cannot. */
  askToReconnect?(): void;
  /** Ends the connection and its streams at once; `reason` is for the log. */
  terminate(reason: string): void;
}

/** An entry of a bind's roster. A stage has its own deadline and is not swept. */
export interface RosteredConnection extends LiveConnection, Rostered, Partial<Sweepable> {}

/** What the stages have established about a connection so far. Each stage passes a more complete one to the next. */
export interface Arrival {
  /** Has the client's addresses after the PROXY header was read, and carries plaintext after TLS was terminated. */
  readonly transport: Transport;
  /** The connection arrived through a tunnel. */
  readonly tunnelled: boolean;
  /** Known for TLS and TCP; plaintext requests select theirs by Host. */
  readonly listener: CompiledListener | undefined;
  /** The client's TLS server name, lower-case; `` = none. */
  readonly serverName: string;
  /** What the authorization service has returned about the connection. */
  readonly metadata: NetworkMetadata | undefined;
}

/** Makes the handler of the connection's next bytes. */
export type Next = (arrival: Arrival) => TransportHandler;

/** The bind of arriving connections. */
export interface Ingress extends StageOwner {
  /** The configuration in effect: a stage that begins after a reload follows the new one. */
  readonly bind: CompiledBind;
  readonly services: Services;
  /** Counters of a listener's connections; undefined = of connections without a listener. */
  seriesOf(listener: CompiledListener | undefined): ConnectionSeries;
  /** The connection waits in `stage`, which ends with a call of `StageOwner`. */
  onStageBegun(stage: RosteredConnection): void;
  /** The connection is rejected and closed right after this call. */
  onRejected(arrival: Arrival, refusal: Refusal): void;
}

/** What decides whether a client may connect, as the metric of denied connections names it. */
type ConnectionPolicy = "ipAccess" | "networkAuthorization" | "networkExtAuthz" | "proxyProtocol";

/** Why a client may not connect, for the log. */
export interface Refusal extends Required<Pick<Rejection, "error" | "origin" | "reason">> {
  readonly policy: ConnectionPolicy;
  readonly code: ErrorCode;
}

/** `origin`: where what decided was written. */
export function refusal(
  policy: ConnectionPolicy,
  code: ErrorCode,
  detail: string | undefined,
  origin: Origin | undefined,
): Refusal {
  const { message, reason } = ERRORS[code];
  return { policy, code, error: detail === undefined ? message : `${message}: ${detail}`, origin, reason };
}

/** What a connection speaks at the end of the chain; `connect`: nothing but CONNECT requests, for tunnels. */
export function protocolOf({ listener, tunnelled }: Arrival, bind: CompiledBind): "connect" | "http" | "tcp" {
  if (!tunnelled && bind.frontend.connect === "tunnel") return "connect";
  if (bind.protocol === "http") return "http";
  if (bind.protocol !== "tls") return "tcp";
  return listener?.protocol === "HTTPS" ? "http" : "tcp";
}

/** The handler of connections that were closed at once. */
export const REJECTED: TransportHandler = { onData() {}, onEnd() {}, onDrain() {}, onClose() {}, onFault() {} };
