/**
 * One UDP port of this thread: the counterpart of BindServer for datagrams. Each datagram belongs to a session, which its client's
 * address and port identify (udp-session.ts). data-plane.ts makes a server for each bind, puts new configurations into effect,
 * and drains it.
 *
 * Clients of UDP can forge their address, so everything that a datagram can cause is bounded: sessions for each port, datagrams
 * that a session holds, log lines and records about clients that may not connect.
 */
import { formatHostPort } from "../../base/listen-address.ts";
import { LogThrottle } from "../../base/log.ts";
import type { Sweepable } from "../../base/sweeper.ts";
import { type Addresses, unmapped } from "../../net/addresses.ts";
import type { AdmittedAddress } from "../../net/egress.ts";
import { type DatagramSource, UdpFlow, UdpPort } from "../../net/udp-socket.ts";
import type { ConnectionSeries, Count } from "../../telemetry/metrics.ts";
import type { CompiledBind, CompiledListener } from "../compile/compiled.ts";
import type { Refusal } from "../ingress/arrival.ts";
import { addressRefusal } from "../ingress/ip-access.ts";
import { refusalOf } from "../ingress/network-authorization.ts";
import type { DrainablePort } from "../ports/drain.ts";
import type { Sharing } from "../ports/sharing.ts";
import type { Services } from "../services/services.ts";
import { recordConnection } from "../telemetry/record-connection.ts";
import { connectionVariables } from "../variables/connection-variables.ts";
import { type DropReason, type Flow, type UdpHost, UdpSession } from "./udp-session.ts";

/** Defaults of `Frontend.udp`. */
const UDP_DEFAULTS = { idleTimeout: 60_000, maxSessions: 10_000, maxDatagramSize: 65_507 } as const;

/** A session may be evicted for a new client after this many milliseconds of silence. */
const EVICTABLE_MS = 5000;
/**
 * Part of the room that the sessions of one address may take while others need some: beyond it, even active ones are ended for a client at
 * an address with fewer. Otherwise one client with many ports would lock out all others.
 */
const ADDRESS_SHARE = 0.25;
/** Limit of the sessions that are examined to find one that may be evicted: it bounds the cost of a datagram. */
const EVICTION_TRIES = 8;
/** Milliseconds in which at most one rejected client is logged and recorded: there may be one with each datagram of a flood. */
const REJECTIONS_LOGGED_MS = 1000;

/** Datagrams of one listener: from clients and to them. */
interface DatagramSeries {
  readonly received: Count;
  readonly sent: Count;
}

/** The sessions of one UDP port; outlives configurations that keep the port. */
export class UdpServer implements UdpHost, DrainablePort, Sweepable {
  readonly #services: Services;
  readonly #onEmpty: () => void;
  /**
   * By address and port of the client. Those at the front were examined for eviction least recently. What base/roster.ts says of a
   * Map does not matter here: sessions live for seconds, and are old before they end.
   */
  readonly #sessions = new Map<string, UdpSession>();
  /** Numbers of sessions by the address of the client. */
  readonly #ofAddress = new Map<string, number>();
  readonly #active: Count;
  readonly #dropped = new Map<DropReason, Count>();
  readonly #rejections = new LogThrottle(REJECTIONS_LOGGED_MS);
  #bind: CompiledBind;
  #listener: CompiledListener | undefined;
  #connections: ConnectionSeries;
  #datagrams: DatagramSeries;
  #port: UdpPort | undefined;
  #localAddress = "";
  #accepting = true;
  #draining = false;
  /** Sessions begun so far. */
  accepted = 0;

  /** `onEmpty` is called when the last session has ended. */
  constructor(bind: CompiledBind, services: Services, onEmpty: () => void) {
    this.#services = services;
    this.#onEmpty = onEmpty;
    this.#bind = bind;
    this.#active = services.metrics.count("udp_sessions", bind.key);
    this.#listener = bind.listeners.find("");
    this.#connections = this.#connectionSeries();
    this.#datagrams = this.#datagramSeries();
  }

  /** Open sessions. */
  get connections(): number {
    return this.#sessions.size;
  }

  get port(): number {
    return this.#port?.port ?? 0;
  }

  get localAddress(): string {
    return this.#localAddress;
  }

  get idleTimeout(): number {
    return this.#limits.idleTimeout;
  }

  get bind(): CompiledBind {
    return this.#bind;
  }

  get #limits(): typeof UDP_DEFAULTS | NonNullable<CompiledBind["frontend"]["udp"]> {
    return this.#bind.frontend.udp ?? UDP_DEFAULTS;
  }

  /** Rejects with the system's error when the port cannot be opened. */
  async listen(port: number, { reusePort }: Sharing): Promise<void> {
    const { host, addresses: [at = host] = [] } = this.#bind.at;
    this.#port = await UdpPort.open({ host: at, port, reusePort, own: this.#services.own }, (bytes, from) =>
      this.onDatagram(bytes, from),
    );
    this.#localAddress = unmapped(this.#port.address);
  }

  /** Ends sessions whose endpoint is not a backend of the new configuration; the next datagram of their client begins another one. */
  update(bind: CompiledBind): void {
    this.#bind = bind;
    this.#listener = bind.listeners.find("");
    this.#connections = this.#connectionSeries();
    this.#datagrams = this.#datagramSeries();
    const route = this.#listener?.tcpRoutes.find("");
    const usable = new Set(
      route?.backends.flatMap(({ weight, balancer }) => (weight === 0 ? [] : (balancer?.endpoints ?? []))),
    );
    for (const session of this.#sessions.values())
      if (session.endpoint === undefined || !usable.has(session.endpoint))
        session.terminate("the configuration has changed");
  }

  // ── datagrams ──

  onDatagram(bytes: Buffer, from: DatagramSource): void {
    if (bytes.length > this.#limits.maxDatagramSize) {
      this.onDropped("size");
      return;
    }
    const session = this.#sessions.get(keyOf(from)) ?? this.#begin(from);
    if (session === undefined) return;
    this.#datagrams.received.count++;
    session.onClientDatagram(bytes);
  }

  answer(bytes: Uint8Array, to: DatagramSource): void {
    if (this.#port?.send(bytes, to) === true) this.#datagrams.sent.count++;
    else this.onDropped("queue");
  }

  onDropped(reason: DropReason): void {
    let count = this.#dropped.get(reason);
    if (count === undefined) {
      count = this.#services.metrics.count("udp_dropped_datagrams_total", this.#bind.key, reason);
      this.#dropped.set(reason, count);
    }
    count.count++;
  }

  // ── sessions ──

  /** Undefined: the client gets no session, and its datagram is dropped. */
  #begin(client: DatagramSource): UdpSession | undefined {
    const reason = this.#reasonToReject(client);
    if (reason !== undefined) {
      this.onDropped(reason);
      return undefined;
    }
    const session = new UdpSession(client, this.#addressesOf(client), this.#listener, this, this.#services);
    this.#sessions.set(keyOf(client), session);
    this.#ofAddress.set(client.address, this.#countOf(client.address) + 1);
    this.#active.count++;
    this.#connections.connections.count++;
    this.accepted++;
    if (this.#draining) session.closeIfIdle();
    session.start(this.#bind.networkAuthorizer);
    return session;
  }

  #reasonToReject(client: DatagramSource): DropReason | undefined {
    // Forged: the response would come back here, and so would the response to that. Sessions are begun only here, so no session has this client.
    if (this.#services.egress.isOwn(client.address, client.port, "udp")) return "own-address";
    if (!this.#accepting) return "draining";
    if (!this.#services.overload.admitConnection()) return "overload";
    if (this.#isDenied(client)) return "authorization";
    const { maxSessions } = this.#limits;
    return this.#sessions.size < maxSessions || this.evictOne(client.address, maxSessions) ? undefined : "sessions";
  }

  /**
   * Makes room for a client at an address, where there is room for `most` sessions. Active sessions are kept: otherwise a flood from forged
   * addresses would end them. Silent ones are not: otherwise it would lock new clients out for the idle timeout.
   */
  evictOne(address: string, most: number): boolean {
    const silentSince = performance.now() - EVICTABLE_MS;
    const fair = Math.max(most * ADDRESS_SHARE, this.#countOf(address) + 1);
    let tries = EVICTION_TRIES;
    for (const [key, session] of this.#sessions) {
      if (session.movedAt <= silentSince || this.#countOf(session.client.address) > fair) {
        session.terminate("another client needed its place; see frontendPolicies.udp.maxSessions", "Overload");
        return true;
      }
      this.#sessions.delete(key);
      this.#sessions.set(key, session);
      if (--tries === 0) return false;
    }
    return false;
  }

  #countOf(address: string): number {
    return this.#ofAddress.get(address) ?? 0;
  }

  sweep(now: number): void {
    for (const session of this.#sessions.values()) session.sweep(now);
  }

  openFlow(address: AdmittedAddress, session: UdpSession): Flow | undefined {
    const flow = new UdpFlow(address, session);
    if (this.#services.sockets.admitSession(flow, session.client.address)) return flow;
    flow.close();
    return undefined;
  }

  onSessionEnd(session: UdpSession): void {
    const { address } = session.client;
    this.#sessions.delete(keyOf(session.client));
    const left = this.#countOf(address) - 1;
    if (left > 0) this.#ofAddress.set(address, left);
    else this.#ofAddress.delete(address);
    this.#active.count--;
    this.#connections.received.count += session.bytesReceived;
    this.#connections.sent.count += session.bytesSent;
    if (this.#sessions.size > 0) return;
    if (!this.#accepting) this.#close();
    this.#onEmpty();
  }

  #addressesOf(client: DatagramSource) {
    const remoteAddress = unmapped(client.address);
    const local = { localAddress: this.localAddress, localPort: this.port };
    const raw = { rawAddress: remoteAddress, rawPort: client.port };
    return { remoteAddress, remotePort: client.port, ...local, ...raw, tls: undefined };
  }

  /** Whether `ipAccess` or `networkAuthorization` rejects the client. */
  #isDenied(client: DatagramSource): boolean {
    const { access, network } = this.#bind;
    const listener = this.#listener;
    if (access === undefined && listener?.access === undefined && network === undefined) return false;
    const host = { bind: this.#bind, services: this.#services };
    const addresses = this.#addressesOf(client);
    const { remoteAddress } = addresses;
    const byAddress =
      addressRefusal(remoteAddress, undefined, host) ?? (listener && addressRefusal(remoteAddress, listener, host));
    if (byAddress !== undefined) {
      this.#reject(addresses, () => byAddress);
      return true;
    }
    if (network === undefined) return false;
    const variables = connectionVariables(addresses, "", this.#services);
    const denial = network.decide(variables);
    if (denial !== undefined) this.#reject(addresses, () => refusalOf(denial, variables, host));
    return denial !== undefined;
  }

  #reject(client: Addresses, why: () => Refusal): void {
    this.#rejections.run((unreported) => {
      const source = formatHostPort(client.remoteAddress, client.remotePort);
      const refusal = why();
      const others = unreported > 0 ? unreported : undefined;
      this.#services.accessLog.rejected({ source, protocol: "udp", ...refusal, unreported: others });
      this.#recordRefused(client, refusal);
    });
  }

  #recordRefused(client: Addresses, { code, reason = "Authorization", origin }: Refusal): void {
    const { recorder } = this.#services;
    if (recorder === undefined) return;
    const { generation, series } = this.#bind;
    const what = { kind: "refused", generation, protocol: "udp", client, received: 0, sent: 0 } as const;
    recordConnection({ ...what, code, reason, origin }, (this.#listener?.series ?? series).placeIn(recorder), recorder);
  }

  // ── the end of the port (drain.ts) ──

  /** Clients of UDP cannot be asked to leave, so new ones are served until the port closes. */
  announceDrain(): void {}
  holdConnections(): void {}
  serveHeld(): void {}

  /** Begins no more sessions; the socket stays open for responses of the existing ones. */
  stopListening(): void {
    this.#accepting = false;
    if (this.#sessions.size === 0) this.#close();
  }

  closeIdle(): void {
    this.#draining = true;
    for (const session of this.#sessions.values()) session.closeIfIdle();
  }

  /** For a bind that the configuration no longer has: its port may be opened again at once, so it cannot wait for silence. */
  drain(): void {
    this.#endAll("the configuration no longer has this port");
  }

  destroy(): void {
    this.#endAll("the gateway shut down");
  }

  #endAll(why: string): void {
    this.stopListening();
    for (const session of this.#sessions.values()) session.terminate(why);
  }

  #close(): void {
    this.#port?.close();
    this.#port = undefined;
  }

  /** Sessions with their activity, for the task dump. */
  tasks(): unknown[] {
    return [...this.#sessions.values()].map((session) => ({
      client: formatHostPort(session.remoteAddress, session.remotePort),
      ...session.activity,
    }));
  }

  #connectionSeries(): ConnectionSeries {
    return this.#services.metrics.connection({ ...this.#labels(), protocol: "udp" });
  }

  #datagramSeries(): DatagramSeries {
    const { bind, gateway, listener } = this.#labels();
    const counted = (direction: "received" | "sent"): Count =>
      this.#services.metrics.count("udp_datagrams_total", bind, gateway, listener, direction);
    return { received: counted("received"), sent: counted("sent") };
  }

  #labels(): { readonly bind: string; readonly gateway: string; readonly listener: string } {
    const { gateway = "unknown", name = "unknown" } = this.#listener ?? {};
    return { bind: this.#bind.key, gateway, listener: name };
  }
}

function keyOf({ address, port }: DatagramSource): string {
  return `${address} ${port}`;
}
