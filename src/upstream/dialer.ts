import type { TLSSocket } from "node:tls";
import { ProxyTunnel } from "../http/proxy-tunnel.ts";
import { type Addresses, socketAddresses } from "../net/addresses.ts";
import { type ByteStream, type ConnectHandler, type ConnectTarget, connect, Transport } from "../net/transport.ts";
import { TlsClient } from "../tls/tls-client.ts";
import type { ConnectClock } from "./connect-attempt.ts";
import { type Address, type PoolTarget, targetName } from "./pool-target.ts";

/** How a request is addressed when a proxy forwards it (RFC 9112 3.2.2). */
export interface ViaProxy {
  /** `http://host:port`, which stands before the path. */
  readonly origin: string;
  readonly authority: string;
  /** Value of Proxy-Authorization. */
  readonly authorization: string | undefined;
}

/** Receives a byte stream, or the reason for the failure; exactly one call. */
export interface StreamWaiter {
  /** `agreed`: by ALPN; undefined for plaintext and where nothing was agreed. */
  onStream(stream: ByteStream, from: Addresses, agreed: string | undefined): void;
  onClose(error: Error | undefined): void;
}

const HTTP1 = ["http/1.1"];
const HTTP2 = ["h2"];
const NOTHING = Buffer.alloc(0);

/**
 * Opens the connections of one pool: straight to its target or through a proxy, with TLS or without. A proxy forwards plaintext
 * HTTP/1.1 request by request; TLS, HTTP/2 and raw bytes go through a tunnel (CONNECT), which the proxy does not look into.
 */
export class Dialer {
  /** Where connections go: the target, or the proxies on the way to it. */
  readonly addresses: readonly Address[];
  /** For plaintext through a proxy, which forwards requests; tunnels carry everything else. */
  readonly viaProxy: ViaProxy | undefined;
  readonly #target: PoolTarget;
  /** `host:port` for the proxy's CONNECT. */
  readonly #name: string;
  /** For the certificate and SNI of the target; `` for a path. */
  readonly #host: string;
  readonly #keepAliveDelay: number;
  readonly #tls: TlsClient | undefined;
  readonly #proxyTls: TlsClient | undefined;
  readonly #tunnel: PoolTarget["tunnel"];

  /** `keepAliveDelay`: milliseconds until TCP keep-alive probes; 0 = off. */
  constructor(target: PoolTarget, keepAliveDelay: number) {
    const { tls, tunnel } = target;
    this.#target = target;
    this.addresses = tunnel?.proxies ?? [target];
    this.#name = targetName(target);
    this.#host = "host" in target ? target.host : "";
    this.#keepAliveDelay = keepAliveDelay;
    this.#tls = tls === undefined ? undefined : new TlsClient(tls);
    this.#proxyTls = tunnel?.tls === undefined ? undefined : new TlsClient(tunnel.tls);
    this.#tunnel = tunnel;
    if (tunnel === undefined || tls !== undefined) return;
    const { authorization } = tunnel;
    this.viaProxy = { origin: `http://${this.#name}`, authority: this.#name, authorization };
  }

  /**
   * Opens a connection for HTTP/1.1 to `address`, which one of `addresses` has resolved to (`host`, `` for a path);
   * `onConnect` or `onClose` of the handler follows. `raw`: it is to carry bytes without HTTP. Returns a function that
   * cancels it.
   */
  dial(
    address: ConnectTarget,
    host: string,
    raw: boolean,
    clock: Pick<ConnectClock, "reached">,
    handler: ConnectHandler,
  ): () => void {
    const tls = this.#tls;
    const protocols = raw ? this.#alpn(HTTP1) : withoutHttp2(this.#alpn(HTTP1));
    if (this.#tunnel === undefined) {
      if (tls === undefined) return connect(address, this.#keepAliveDelay, handler);
      return tls.connect(address, this.#host, this.#keepAliveDelay, protocols, handler, () => clock.reached());
    }
    if (this.viaProxy !== undefined && !raw) return this.#reachProxy(address, host, false, handler);
    return this.#throughProxy(address, host, handler, (stream, from) => {
      if (tls !== undefined) {
        clock.reached();
        return tls.connect({ socket: stream }, this.#host, 0, protocols, handler);
      }
      let cancel = (): void => {};
      Transport.over(stream, from, (transport) => {
        cancel = () => transport.destroy();
        handler.onConnect(transport);
        return handler;
      });
      return cancel;
    });
  }

  /**
   * As `dial`, for HTTP/2, whose library reads the stream itself. ALPN offers HTTP/2 alone unless the configuration says more.
   */
  dialStream(
    address: ConnectTarget,
    host: string,
    clock: Pick<ConnectClock, "reached">,
    waiter: StreamWaiter,
  ): () => void {
    const tls = this.#tls;
    const handshake = {
      onReached: () => clock.reached(),
      onSecure: (socket: TLSSocket) =>
        waiter.onStream(socket, socketAddresses(socket), socket.alpnProtocol || undefined),
      onClose: (error: Error | undefined) => waiter.onClose(error),
    };
    if (this.#tunnel !== undefined)
      return this.#throughProxy(address, host, waiter, (stream, from) => {
        if (tls !== undefined) {
          clock.reached();
          return tls.open({ socket: stream }, this.#host, 0, this.#alpn(HTTP2), handshake);
        }
        waiter.onStream(stream, from, undefined);
        return () => stream.destroy();
      });
    if (tls === undefined) return openStream(address, this.#keepAliveDelay, waiter);
    return tls.open(address, this.#host, this.#keepAliveDelay, this.#alpn(HTTP2), handshake);
  }

  /** The protocols that ALPN offers to the target. */
  #alpn(otherwise: readonly string[]): readonly string[] {
    return this.#target.tls?.alpn ?? otherwise;
  }

  /** `givenAway`: the stream is taken off its transport once the tunnel is open. */
  #reachProxy(address: ConnectTarget, host: string, givenAway: boolean, handler: ConnectHandler): () => void {
    if (this.#proxyTls === undefined) return connect(address, this.#keepAliveDelay, handler, givenAway);
    const protocols = withoutHttp2(this.#tunnel?.tls?.alpn ?? HTTP1);
    return this.#proxyTls.connect(address, host, this.#keepAliveDelay, protocols, handler);
  }

  /** Opens a tunnel to the target; `goOn` continues on its stream and returns the function that cancels it from then on. */
  #throughProxy(
    address: ConnectTarget,
    host: string,
    waiter: Pick<StreamWaiter, "onClose">,
    goOn: (stream: ByteStream, from: Addresses) => () => void,
  ): () => void {
    const tunnel = new ProxyTunnel(this.#name, this.#tunnel?.authorization, {
      onTunnel: (stream, from) => {
        cancel = goOn(stream, from);
      },
      onTunnelFailure: (error) => waiter.onClose(error),
    });
    let cancel = this.#reachProxy(address, host, true, tunnel);
    return () => cancel();
  }
}

/** A plaintext connection as a stream, for HTTP/2. */
function openStream(address: ConnectTarget, keepAliveDelay: number, waiter: StreamWaiter): () => void {
  const opening: ConnectHandler = {
    onConnect: (transport) => waiter.onStream(transport.release(NOTHING), transport, undefined),
    onClose: (error) => waiter.onClose(error),
    onData() {},
    onEnd() {},
    onDrain() {},
    onFault() {},
  };
  return connect(address, keepAliveDelay, opening, true);
}

/** A server must not choose HTTP/2 for a connection that will carry HTTP/1.1. */
function withoutHttp2(protocols: readonly string[]): readonly string[] {
  return protocols.filter((name) => name !== "h2");
}
