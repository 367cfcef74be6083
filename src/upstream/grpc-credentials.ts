import type { Socket } from "node:net";
import type * as Grpc from "@grpc/grpc-js";
import { ProxyTunnel } from "../http/proxy-tunnel.ts";
import { socketAddresses } from "../net/addresses.ts";
import { type ByteStream, Transport } from "../net/transport.ts";
import { TlsClient } from "../tls/tls-client.ts";
import { type PoolTarget, targetName } from "./pool-target.ts";

type Connector = ReturnType<Grpc.ChannelCredentials["_createSecureConnector"]>;
type Connected = Awaited<ReturnType<Connector["connect"]>>;

/** Who is asked for in TLS by ALPN (RFC 9113 3.3). */
const HTTP2 = ["h2"];

/**
 * How the connections of a channel are made: as those for HTTP, by the same TLS and the same proxies. The library opens the
 * socket, to the proxy where there is one; what goes on inside it is up to its "credentials". Those that it brings check
 * names in their own way and know no proxies, so it gets a class of the gateway's.
 */
export function grpcCredentials(grpc: typeof Grpc, target: PoolTarget): Grpc.ChannelCredentials {
  const { tls, tcp, tunnel } = target;
  if (tls === undefined && tcp === undefined && tunnel === undefined) return grpc.credentials.createInsecure();
  const steps = new ConnectionSteps(target);
  class OwnCredentials extends grpc.ChannelCredentials {
    _isSecure(): boolean {
      return steps.secure;
    }
    _equals(other: Grpc.ChannelCredentials): boolean {
      return this === other;
    }
    _createSecureConnector(...[, , callCredentials]: Parameters<Grpc.ChannelCredentials["_createSecureConnector"]>) {
      const credentials = callCredentials ?? grpc.credentials.createEmpty();
      return {
        connect: (socket: Socket) => steps.take(socket),
        waitForReady: () => Promise.resolve(),
        getCallCredentials: () => credentials,
        destroy() {},
      };
    }
  }
  return new OwnCredentials();
}

/** What is done on a socket that is connected, until HTTP/2 can begin. */
class ConnectionSteps {
  readonly #target: PoolTarget;
  readonly #tls: TlsClient | undefined;
  readonly #proxyTls: TlsClient | undefined;

  constructor(target: PoolTarget) {
    const { tls, tunnel } = target;
    this.#target = target;
    this.#tls = tls === undefined ? undefined : new TlsClient(tls);
    this.#proxyTls = tunnel?.tls === undefined ? undefined : new TlsClient(tunnel.tls);
  }

  get secure(): boolean {
    return this.#tls !== undefined;
  }

  async take(socket: Socket): Promise<Connected> {
    const { tcp, tunnel } = this.#target;
    if (tcp?.keepalives?.enabled === true) socket.setKeepAlive(true, tcp.keepalives.time);
    let stream: ByteStream = socket;
    if (tunnel !== undefined) {
      const [proxy] = tunnel.proxies;
      const host = proxy !== undefined && "host" in proxy ? proxy.host : "";
      if (this.#proxyTls !== undefined) stream = await this.#proxyTls.secure(socket, host, ["http/1.1"]);
      stream = await openTunnel(stream, socket, targetName(this.#target), tunnel.authorization);
    }
    const host = "host" in this.#target ? this.#target.host : "";
    const secured = await this.#tls?.secure(stream, host, HTTP2);
    return { socket: secured ?? (stream as Socket), secure: this.secure };
  }
}

function openTunnel(
  stream: ByteStream,
  socket: Socket,
  authority: string,
  authorization: string | undefined,
): Promise<ByteStream> {
  return new Promise((resolve, reject) => {
    const tunnel = new ProxyTunnel(authority, authorization, {
      onTunnel: (opened) => resolve(opened),
      onTunnelFailure: reject,
    });
    Transport.over(stream, socketAddresses(socket), (transport) => {
      tunnel.onConnect(transport);
      return tunnel;
    });
  });
}
