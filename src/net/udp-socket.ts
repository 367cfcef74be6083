import type { RemoteInfo, Socket, SocketOptions } from "node:dgram";
import { isIPv6 } from "node:net";
import { nodeDgram } from "../base/lazy-node.ts";
import { listenAt } from "../base/listen-address.ts";
import type { OwnSockets } from "../base/own-sockets.ts";
import type { AdmittedAddress } from "./egress.ts";

/**
 * Bytes of datagrams that a socket may hold because the system takes no more; further ones are dropped. The system usually takes
 * them at once, so this bounds memory when a network device stalls.
 */
const MAX_QUEUED = 1024 * 1024;

/** Where datagrams of a client come from. */
export interface DatagramSource {
  /** As the socket shows it: IPv4 clients of a dual-stack socket have an address such as `::ffff:192.0.2.1`. */
  readonly address: string;
  readonly port: number;
}

interface UdpAddress {
  readonly host: string;
  readonly port: number;
  readonly reusePort: boolean;
  /** Where the port is recorded as one of the gateway's own. */
  readonly own: OwnSockets;
}

type OnDatagram = (bytes: Buffer, from: DatagramSource) => void;

/** The socket of a UDP port, which receives the datagrams of all clients. */
export class UdpPort {
  readonly #socket: Socket;
  #forget: () => void = () => {};

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  /**
   * `host`: `::` for both families. `reusePort`: several threads have the same port; the system assigns clients to them by address
   * and port, so all datagrams of a client reach the same thread. Rejects with the system's error (`EADDRINUSE`, …).
   */
  static open(address: UdpAddress, onDatagram: OnDatagram): Promise<UdpPort> {
    return listenAt(address.host, (host) => UdpPort.#open({ ...address, host }, onDatagram));
  }

  static #open({ host, port, reusePort, own }: UdpAddress, onDatagram: OnDatagram): Promise<UdpPort> {
    const socket = createSocket(host, { reusePort });
    const opened = new UdpPort(socket);
    return new Promise((resolve, reject) => {
      const failed = (error: Error): void => {
        socket.close();
        reject(error);
      };
      socket.once("error", failed);
      socket.bind({ address: host, port, exclusive: true }, () => {
        socket.removeListener("error", failed);
        opened.#forget = own.addPort("udp", "bind", opened.port, host);
        // A datagram that cannot be sent or received is lost, which UDP allows; the port stays open.
        socket.on("error", () => {});
        socket.on("message", (bytes: Buffer, from: RemoteInfo) => onDatagram(bytes, from));
        resolve(opened);
      });
    });
  }

  get address(): string {
    return this.#socket.address().address;
  }

  get port(): number {
    return this.#socket.address().port;
  }

  /** False: the datagram is dropped, because too many wait to be sent, or because it would go to port 0. */
  send(bytes: Uint8Array, { address, port }: DatagramSource): boolean {
    // A forged datagram may come from port 0, where nothing can be sent: Node.js would throw.
    if (port === 0 || this.#socket.getSendQueueSize() > MAX_QUEUED) return false;
    this.#socket.send(bytes, port, address);
    return true;
  }

  close(): void {
    this.#socket.close(this.#forget);
  }
}

/** What happens on a `UdpFlow`. */
export interface UdpFlowEvents {
  /** From now on datagrams can be sent. */
  onOpen(): void;
  onDatagram(bytes: Buffer): void;
  /** The system reports an error, such as that nothing listens on the port (ICMP). The flow can still be used. */
  onError(error: Error): void;
}

/** A socket that exchanges datagrams with one peer: the system drops those of others, and reports that the peer is unreachable. */
export class UdpFlow {
  /** The peer. */
  readonly to: { readonly host: string; readonly port: number };
  readonly #socket: Socket;
  #closed = false;

  constructor(address: AdmittedAddress, events: UdpFlowEvents) {
    if (!("host" in address.options)) throw new TypeError("datagrams go to IP addresses only");
    const { host, port } = address.options;
    this.to = address.options;
    const socket = createSocket(host, {});
    this.#socket = socket;
    socket.on("error", (error) => {
      if (!this.#closed) events.onError(error);
    });
    socket.on("message", (bytes: Buffer) => {
      if (!this.#closed) events.onDatagram(bytes);
    });
    socket.once("connect", () => {
      if (this.#closed) return;
      const refused = address.refusedAfter(
        { localAddress: socket.address().address, remoteAddress: socket.remoteAddress().address },
        "udp",
      );
      if (refused === undefined) events.onOpen();
      else events.onError(refused);
    });
    socket.connect(port, host);
  }

  /** Only once it is open. False: the datagram is dropped, because too many wait to be sent. */
  send(bytes: Uint8Array): boolean {
    if (this.#socket.getSendQueueSize() > MAX_QUEUED) return false;
    this.#socket.send(bytes);
    return true;
  }

  /** No event follows. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#socket.close();
  }

  /** As an event emitter, for code that counts open sockets. */
  on(event: "close", listener: () => void): void {
    this.#socket.on(event, listener);
  }
}

function createSocket(address: string, options: Omit<SocketOptions, "type" | "lookup">): Socket {
  return nodeDgram().createSocket({
    ...options,
    type: isIPv6(address) ? "udp6" : "udp4",
    // All addresses are IP addresses. The default would pass each of them through the resolver, once per datagram.
    lookup: (host, _options, callback) => callback(null, host, isIPv6(host) ? 6 : 4),
  });
}
