import { ProxyTunnel } from "../http/proxy-tunnel.ts";
import { TlsClient } from "../http/tls-client.ts";
import { type ConnectHandler, type ConnectTarget, connect, Transport } from "../http/transport.ts";
import { type Address, type PoolTarget, targetName } from "./pool-target.ts";

/** How requests are sent that a proxy is to forward (RFC 9112 3.2.2). */
export interface ViaProxy {
  /** `http://host:port`, which stands before the path. */
  readonly origin: string;
  readonly authority: string;
  /** Value of Proxy-Authorization. */
  readonly authorization: string | undefined;
}

/** Makes the connections of one pool: straight to its target or through a proxy, with TLS or without. */
export class Dialer {
  /** Where connections go: the target, or the proxies on the way to it. */
  readonly addresses: readonly Address[];
  /** For plaintext through a proxy, which forwards requests; tunnels carry everything else. */
  readonly viaProxy: ViaProxy | undefined;
  readonly #name: string;
  readonly #host: string;
  readonly #keepAliveDelay: number;
  readonly #tls: TlsClient | undefined;
  readonly #proxyTls: TlsClient | undefined;
  readonly #tunnel: PoolTarget["tunnel"];

  /** `keepAliveDelay`: milliseconds until TCP keep-alive probes; 0 = off. */
  constructor(target: PoolTarget, keepAliveDelay: number) {
    const { tls, tunnel } = target;
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
   * Opens a connection to `address`, which one of `addresses` has resolved to (`host`, `` for a path); `onConnect` or
   * `onClose` of the handler follows. `raw`: it is to carry bytes without HTTP. Returns a function that gives up.
   */
  dial(address: ConnectTarget, host: string, raw: boolean, handler: ConnectHandler): () => void {
    if (this.#tunnel === undefined) {
      if (this.#tls === undefined) return connect(address, this.#keepAliveDelay, handler);
      return this.#tls.connect(address, this.#host, this.#keepAliveDelay, handler);
    }
    if (this.viaProxy !== undefined && !raw) return this.#reachProxy(address, host, false, handler);
    return this.#dialThrough(address, host, this.#tunnel.authorization, handler);
  }

  #reachProxy(address: ConnectTarget, host: string, givenAway: boolean, handler: ConnectHandler): () => void {
    if (this.#proxyTls === undefined) return connect(address, this.#keepAliveDelay, handler, givenAway);
    return this.#proxyTls.connect(address, host, this.#keepAliveDelay, handler);
  }

  #dialThrough(
    address: ConnectTarget,
    host: string,
    authorization: string | undefined,
    handler: ConnectHandler,
  ): () => void {
    const tunnel = new ProxyTunnel(this.#name, authorization, {
      onTunnel: (stream, from) => {
        if (this.#tls !== undefined) {
          giveUp = this.#tls.connect({ socket: stream }, this.#host, 0, handler);
          return;
        }
        Transport.over(stream, from, (transport) => {
          giveUp = () => transport.destroy();
          handler.onConnect(transport);
          return handler;
        });
      },
      onTunnelFailure: (error) => handler.onClose(error),
    });
    let giveUp = this.#reachProxy(address, host, true, tunnel);
    return () => giveUp();
  }
}
