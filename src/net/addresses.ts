import { canonicalAddress } from "../base/ip-address.ts";
import { formatHostPort } from "../base/listen-address.ts";

/** Where a connection comes from and where it went. */
export interface Addresses {
  /** The client's address: that of the TCP peer, or the one in a PROXY header. IPv4 clients of a dual-stack socket appear as IPv4. */
  readonly remoteAddress: string;
  readonly remotePort: number;
  /** What the client connected to. */
  readonly localAddress: string;
  readonly localPort: number;
  /** Address of the TCP peer, even with a PROXY header. */
  readonly rawAddress: string;
  readonly rawPort: number;
  /** The CONNECT request of the tunnel that carries the connection; undefined outside tunnels. */
  readonly connectHead?: ConnectHead | undefined;
}

/** What expressions read of a CONNECT request. */
interface ConnectHead {
  /** `host:port` */
  readonly authority: string;
  /** Names and values alternate. */
  readonly headers: readonly string[];
}

/** Base class of connections. */
export class Peer implements Addresses {
  remoteAddress: string;
  remotePort: number;
  localAddress: string;
  localPort: number;
  readonly rawAddress: string;
  readonly rawPort: number;
  readonly connectHead: ConnectHead | undefined;

  constructor(from: Addresses) {
    this.remoteAddress = from.remoteAddress;
    this.remotePort = from.remotePort;
    this.localAddress = from.localAddress;
    this.localPort = from.localPort;
    this.rawAddress = from.rawAddress;
    this.rawPort = from.rawPort;
    this.connectHead = from.connectHead;
  }
}

/** The other end of a connection. */
export interface PeerAddress {
  readonly address: string;
  readonly port: number;
}

/** A client in logs: `192.0.2.7:4711`, or `unix` for one of a Unix socket, which has no address. */
export function clientName({ remoteAddress, remotePort }: Pick<Addresses, "remoteAddress" | "remotePort">): string {
  return remoteAddress === "" ? "unix" : formatHostPort(remoteAddress, remotePort);
}

/** The other end of a connection that the gateway has opened; undefined for a socket file. */
export function peerAddress({
  remoteAddress,
  remotePort,
}: Pick<Addresses, "remoteAddress" | "remotePort">): PeerAddress | undefined {
  return remoteAddress === "" ? undefined : { address: remoteAddress, port: remotePort };
}

/** The addresses of a socket. */
export function socketAddresses(socket: {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
}): Addresses {
  const remoteAddress = unmapped(socket.remoteAddress ?? "");
  const remotePort = socket.remotePort ?? 0;
  return {
    remoteAddress,
    remotePort,
    localAddress: unmapped(socket.localAddress ?? ""),
    localPort: socket.localPort ?? 0,
    rawAddress: remoteAddress,
    rawPort: remotePort,
  };
}

/**
 * An address of the system in canonical form: IPv4 clients of a dual-stack socket appear with IPv4-mapped IPv6 addresses (RFC 4291 2.5.5.2).
 * Link-local addresses keep their zone.
 */
export function unmapped(address: string): string {
  return address.includes(":") ? (canonicalAddress(address) ?? address) : address;
}
