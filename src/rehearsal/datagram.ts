/** The first datagram of a client, on a real port and session of UDP whose sockets exist in memory only. */
import { ERRORS, type ErrorCode } from "../base/errors.ts";
import { formatHostPort } from "../base/listen-address.ts";
import type { Addresses } from "../net/addresses.ts";
import type { AdmittedAddress } from "../net/egress.ts";
import type { CompiledBind } from "../proxy/compile/compiled.ts";
import type { Services } from "../proxy/services/services.ts";
import { routeOfConnection } from "../proxy/tcp/connection-trace.ts";
import { UdpServer } from "../proxy/udp/udp-server.ts";
import type { DropReason, Flow, UdpSession } from "../proxy/udp/udp-session.ts";
import type { AccessRecord } from "../telemetry/access-record.ts";
import type { TraceEvent, TraceMessage } from "../trace/events.ts";

/** Why a port drops a datagram for which it has begun no session; the record of a session says it itself. */
const DROPPED: Readonly<Record<DropReason, { readonly code: ErrorCode } | { readonly why: string }>> = {
  authorization: { code: "TG_AUTHORIZATION" },
  backend: { code: "TG_NO_BACKENDS" },
  draining: { why: "the port is closing" },
  overload: { code: "TG_OVERLOADED" },
  "own-address": { code: "TG_LOOP" },
  queue: { why: "too many datagrams are waiting" },
  sessions: { why: "there are too many sessions" },
  size: { why: "the datagram is longer than frontendPolicies.udp.maxDatagramSize" },
};

/** A port that takes one datagram, and settles once that is sent on or dropped. */
class RehearsedPort extends UdpServer {
  readonly settled = Promise.withResolvers<void>();
  readonly #local: Addresses;
  dropped: DropReason | undefined;

  constructor(bind: CompiledBind, services: Services, local: Addresses) {
    super(bind, services, () => {});
    this.#local = local;
  }

  override get port(): number {
    return this.#local.localPort;
  }

  override get localAddress(): string {
    return this.#local.localAddress;
  }

  override openFlow({ options }: AdmittedAddress, session: UdpSession): Flow {
    // As a socket opens, after the session has it.
    queueMicrotask(() => session.onOpen());
    const send = (): boolean => {
      this.settled.resolve();
      return true;
    };
    return { to: "host" in options ? options : { host: "", port: 0 }, send, close() {} };
  }

  override onDropped(reason: DropReason): void {
    super.onDropped(reason);
    this.dropped = reason;
    this.settled.resolve();
  }

  override onSessionEnd(session: UdpSession): void {
    super.onSessionEnd(session);
    this.settled.resolve();
  }
}

interface Datagram {
  readonly record: Partial<AccessRecord> | undefined;
  readonly events: readonly TraceEvent[];
}

/** `recordOf` reads what the access log has at the end of the session. */
export async function rehearseDatagram(
  bytes: Buffer,
  from: Addresses,
  bind: CompiledBind,
  services: Services,
  recordOf: () => Partial<AccessRecord> | undefined,
): Promise<Datagram> {
  const port = new RehearsedPort(bind, services, from);
  port.onDatagram(bytes, { address: from.remoteAddress, port: from.remotePort });
  await port.settled.promise;
  // Nothing follows, so the session ends.
  port.sweep(Number.POSITIVE_INFINITY);
  const record = recordOf();
  if (record !== undefined) return { record, events: port.accepted > 0 ? eventsOf(record, bind) : [] };
  const source = formatHostPort(from.remoteAddress, from.remotePort);
  return { record: { source, protocol: "udp", ...(port.dropped && errorOf(port.dropped)) }, events: [] };
}

function errorOf(dropped: DropReason): Pick<AccessRecord, "error" | "code" | "reason"> {
  const cause = DROPPED[dropped];
  if (!("code" in cause)) return { error: cause.why, code: undefined, reason: undefined };
  const { message, reason } = ERRORS[cause.code];
  return { error: message, code: cause.code, reason };
}

/** Sessions have no trace: what it would have follows from the record. */
function eventsOf({ route, endpoint, error }: Partial<AccessRecord>, { listeners }: CompiledBind): TraceEvent[] {
  const routes = listeners.find("")?.tcpRoutes.routes ?? [];
  const messages: TraceMessage[] = [
    routeOfConnection(
      routes.find(({ label }) => label === route),
      routes,
    ),
  ];
  if (endpoint !== undefined)
    messages.push(
      { type: "backendCallStart", target: endpoint },
      { type: "backendCallResult", status: null, error: error ?? null },
    );
  return messages.map((message) => ({ eventStart: null, eventEnd: 0, severity: "info", message }));
}
