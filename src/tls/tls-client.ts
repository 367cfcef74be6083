import { createHash } from "node:crypto";
import { isIP } from "node:net";
import type { ConnectionOptions, SecureContext, TLSSocket } from "node:tls";
import { nodeTls } from "../base/lazy-node.ts";
import { socketAddresses } from "../net/addresses.ts";
import { type ByteStream, type ConnectHandler, type ConnectTarget, Transport } from "../net/transport.ts";
import { opensslGroups } from "./tls-ciphers.ts";
import type { BackendTls } from "./tls-settings.ts";

/** Who waits for a handshake; exactly one call. */
export interface SecureWaiter {
  /** `socket.alpnProtocol` is what was agreed on. */
  onSecure(socket: TLSSocket): void;
  onClose(error: Error | undefined): void;
  /** The transport connection is there and the handshake begins; not when it was there before. */
  readonly onReached?: (() => void) | undefined;
}

/** Where TLS begins: an address to connect to, or a stream that is there. */
export type TlsCarrier = ConnectTarget | { readonly socket: ByteStream };

/** TLS to the servers of one backend; connections after the first resume its session. */
export class TlsClient {
  readonly #config: BackendTls;
  readonly #context: SecureContext;
  #session: Buffer | undefined;

  /** Throws an Error for certificates or keys that cannot be used. */
  constructor(config: BackendTls) {
    const { cert, key, root, keyExchangeGroups } = config;
    this.#config = config;
    this.#context = nodeTls().createSecureContext({
      minVersion: "TLSv1.2",
      ...(cert !== undefined && { cert }),
      ...(key !== undefined && { key }),
      ...(root !== undefined && { ca: root }),
      ...(keyExchangeGroups !== undefined && { ecdhCurve: opensslGroups(keyExchangeGroups) }),
    });
  }

  /** As `open`; the bytes inside go to `handler`, whose `onConnect` or `onClose` follows. */
  connect(
    target: TlsCarrier,
    host: string,
    keepAliveDelay: number,
    protocols: readonly string[],
    handler: ConnectHandler,
    onReached?: () => void,
  ): () => void {
    return this.open(target, host, keepAliveDelay, protocols, {
      onSecure: (socket) =>
        Transport.over(socket, socketAddresses(socket), (transport) => {
          handler.onConnect(transport);
          return handler;
        }),
      onClose: (error) => handler.onClose(error),
      onReached,
    });
  }

  /**
   * Opens a connection with its handshake, or makes the handshake on a stream that is there, `host` being the name that is
   * meant by `target` and `protocols` those that are offered by ALPN, empty for none. Returns a function that gives the
   * attempt up.
   */
  open(
    target: TlsCarrier,
    host: string,
    keepAliveDelay: number,
    protocols: readonly string[],
    waiter: SecureWaiter,
  ): () => void {
    let failure: Error | undefined;
    const socket = nodeTls().connect({ ...target, ...this.#options(host, protocols) });
    this.#keepSession(socket);
    if (keepAliveDelay > 0) socket.setKeepAlive(true, keepAliveDelay);
    const failed = (error: Error): void => {
      failure = error;
    };
    const closed = (): void => waiter.onClose(failure);
    socket.setNoDelay(true);
    socket.on("error", failed);
    socket.on("close", closed);
    if (waiter.onReached !== undefined && !("socket" in target)) socket.once("connect", waiter.onReached);
    socket.once("secureConnect", () => {
      socket.removeListener("error", failed);
      socket.removeListener("close", closed);
      waiter.onSecure(socket);
    });
    return () => socket.destroy();
  }

  #keepSession(socket: TLSSocket): void {
    socket.on("session", (session) => {
      this.#session = session;
    });
  }

  #options(host: string, protocols: readonly string[]): ConnectionOptions & { readonly allowHalfOpen: true } {
    const { hostname = host, insecure, insecureHost, subjectAltNames } = this.#config;
    return {
      secureContext: this.#context,
      allowHalfOpen: true,
      ...(protocols.length > 0 && { ALPNProtocols: [...protocols] }),
      rejectUnauthorized: !insecure,
      // Addresses are no names to ask for (RFC 6066 3).
      ...(isIP(hostname) === 0 && hostname !== "" && { servername: hostname }),
      ...(this.#session !== undefined && { session: this.#session }),
      checkServerIdentity: (_name, certificate) => {
        if (insecureHost) return undefined;
        const names = subjectAltNames ?? [hostname];
        const errors = names.map((name) => nodeTls().checkServerIdentity(name, certificate));
        return errors.includes(undefined) ? undefined : errors[0];
      },
    };
  }
}

/** What tells connections of one TLS configuration from those of another. */
export function tlsIdentity(config: object): string {
  return createHash("sha256").update(JSON.stringify(config)).digest("base64url").slice(0, 16);
}
