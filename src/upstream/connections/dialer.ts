import { FIRST_HOP } from "../../http/loop.ts";
import type { Latin1 } from "../../http/message/message.ts";
import { ProxyTunnel } from "../../http/proxy-tunnel.ts";
import type { Addresses } from "../../net/addresses.ts";
import { type ConnectHandler, connect } from "../../net/connect.ts";
import type { AdmittedAddress } from "../../net/egress.ts";
import { type ByteStream, Transport } from "../../net/transport.ts";
import { TlsClient } from "../../tls/tls-client.ts";
import { type Address, type PoolTarget, targetName } from "../settings/pool-target.ts";
import type { ConnectClock } from "./connect-attempt.ts";

/** How a request is addressed if a proxy forwards it (RFC 9112 3.2.2). */
export interface ViaProxy {
  /** `http://host:port`, which precedes the path. */
  readonly origin: string;
  readonly authority: string;
  /** Value of Proxy-Authorization. */
  readonly authorization: string | undefined;
}

/** What a connection will carry. `raw`: bytes without HTTP. `both`: HTTP/2, or HTTP/1.1 if the server selects that. */
export type Carries = "http1" | "http2" | "both" | "raw";

/**
 * Opens a connection to the target itself, without TLS and tunnels, with a protocol that the gateway offers. `target`: as `targetName` has
 * it. Returns a function that cancels it.
 */
export type Connect = (carries: Exclude<Carries, "both">, handler: ConnectHandler, target: string) => () => void;

/** What ALPN offers (RFC 7301), unless the configuration has a list. */
const OFFERS: Readonly<Record<Carries, readonly string[]>> = {
  http1: ["http/1.1"],
  http2: ["h2"],
  both: ["h2", "http/1.1"],
  raw: ["http/1.1"],
};

/**
 * Opens the connections of one pool: directly to its target or through a proxy, with or without TLS. A proxy forwards plaintext
 * HTTP/1.1 request by request; TLS, HTTP/2 and raw bytes go through a tunnel (CONNECT), which is opaque to the proxy.
 */
export class Dialer {
  /** Where connections go: the target, or the proxies on the way to it. */
  readonly addresses: readonly Address[];
  /** Set if a proxy forwards plaintext requests; a tunnel carries everything else. */
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
  readonly #connect: Connect | undefined;

  /** `keepAliveDelay`: milliseconds until TCP keep-alive probes; 0 = off. `connect` connects in place of the network. */
  constructor(target: PoolTarget, keepAliveDelay: number, connect?: Connect) {
    const { tls, tunnel } = target;
    this.#target = target;
    this.addresses = tunnel?.proxies ?? [target];
    this.#name = targetName(target);
    this.#host = "host" in target ? target.host : "";
    this.#keepAliveDelay = keepAliveDelay;
    this.#tls = tls === undefined ? undefined : new TlsClient(tls);
    this.#proxyTls = tunnel?.tls === undefined ? undefined : new TlsClient(tunnel.tls);
    this.#tunnel = tunnel;
    this.#connect = connect;
    if (tunnel === undefined || tls !== undefined) return;
    const { authorization } = tunnel;
    this.viaProxy = { origin: `http://${this.#name}`, authority: this.#name, authorization };
  }

  /**
   * Opens a connection to `address`, which one of `addresses` has resolved to. `host`: the name that was resolved, `` for a path.
   * `loop`: see `ConnectWaiter`. Returns a function that cancels it.
   */
  dial(
    address: AdmittedAddress,
    host: string,
    carries: Carries,
    clock: Pick<ConnectClock, "reached">,
    handler: ConnectHandler,
    loop: Latin1 = FIRST_HOP,
  ): () => void {
    const tls = this.#tls;
    const protocols = this.#alpn(carries);
    if (this.#connect !== undefined) {
      const chosen = carries === "raw" ? carries : protocols.includes("h2") ? "http2" : "http1";
      return this.#connect(chosen, handler, this.#name);
    }
    if (this.#tunnel === undefined) {
      if (tls === undefined) return connect(address, this.#keepAliveDelay, handler);
      return tls.connect(address, this.#host, this.#keepAliveDelay, protocols, handler, () => clock.reached());
    }
    if (this.viaProxy !== undefined && carries === "http1") return this.#reachProxy(address, host, false, handler);
    return this.#throughProxy(address, host, loop, handler, (stream, from) => {
      if (tls !== undefined) {
        clock.reached();
        return tls.connect({ socket: stream }, this.#host, 0, protocols, handler);
      }
      let cancel = (): void => {};
      Transport.over(stream, from, (transport) => {
        cancel = () => transport.destroy();
        return handler.onConnect(transport, undefined);
      });
      return cancel;
    });
  }

  /** The protocols that ALPN offers to the target. */
  #alpn(carries: Carries): readonly string[] {
    const offered = this.#target.tls?.alpn ?? OFFERS[carries];
    return carries === "http1" ? withoutHttp2(offered) : offered;
  }

  /** `givenAway`: the stream leaves its transport once the tunnel is open. */
  #reachProxy(address: AdmittedAddress, host: string, givenAway: boolean, handler: ConnectHandler): () => void {
    if (this.#proxyTls === undefined) return connect(address, this.#keepAliveDelay, handler, givenAway);
    const protocols = withoutHttp2(this.#tunnel?.tls?.alpn ?? OFFERS.http1);
    return this.#proxyTls.connect(address, host, this.#keepAliveDelay, protocols, handler);
  }

  /** Opens a tunnel to the target; `goOn` continues on its stream and returns the function that cancels it from then on. */
  #throughProxy(
    address: AdmittedAddress,
    host: string,
    loop: Latin1,
    waiter: Pick<ConnectHandler, "onClose">,
    goOn: (stream: ByteStream, from: Addresses) => () => void,
  ): () => void {
    const tunnel = new ProxyTunnel(this.#name, this.#tunnel?.authorization, loop, {
      onTunnel: (stream, from) => {
        cancel = goOn(stream, from);
      },
      onTunnelFailure: (error) => waiter.onClose(error),
    });
    let cancel = this.#reachProxy(address, host, true, tunnel);
    return () => cancel();
  }
}

/** A server must not choose HTTP/2 for a connection that will carry HTTP/1.1. */
function withoutHttp2(protocols: readonly string[]): readonly string[] {
  return protocols.filter((name) => name !== "h2");
}
