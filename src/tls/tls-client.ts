import { createHash } from "node:crypto";
import { isIP } from "node:net";
import type { ConnectionOptions, PeerCertificate, SecureContext, TLSSocket } from "node:tls";
import { codeOf } from "../base/errors.ts";
import { nodeTls } from "../base/lazy-node.ts";
import { socketAddresses } from "../net/addresses.ts";
import type { ConnectHandler } from "../net/connect.ts";
import { AdmittedAddress } from "../net/egress.ts";
import { type ByteStream, Transport } from "../net/transport.ts";
import { altNames } from "./client-certificate.ts";
import { opensslGroups } from "./tls-ciphers.ts";
import type { BackendTls } from "./tls-settings.ts";

/**
 * Texts of OpenSSL's codes for certificates without a trusted CA. Node.js adds that a flag of its command line may help, which
 * bin/launch.sh has set already.
 */
const UNTRUSTED: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: "self-signed certificate",
  SELF_SIGNED_CERT_IN_CHAIN: "self-signed certificate in certificate chain",
  UNABLE_TO_GET_ISSUER_CERT: "unable to get issuer certificate",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "unable to get local issuer certificate",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "unable to verify the first certificate",
};

/** Receives the result of a handshake; exactly one of `onSecure` and `onClose` is called. */
interface SecureWaiter {
  /** `socket.alpnProtocol` is the negotiated protocol. */
  onSecure(socket: TLSSocket): void;
  onClose(error: Error | undefined): void;
  /** TCP is connected and the handshake begins. Not called for a stream that was connected before. */
  readonly onReached?: (() => void) | undefined;
}

/** An address to connect to, or a stream that is already connected, such as a tunnel. */
type TlsCarrier = AdmittedAddress | { readonly socket: ByteStream };

/**
 * TLS to the servers of one backend. The context is built once, because reading keys and CAs is slow. Connections after the
 * first resume its session (RFC 8446 2.2), which saves the server a signature and the gateway a verification.
 */
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
      // The CA that issued the server's certificate is enough: OpenSSL would also require those above it.
      ...(root !== undefined && { ca: root, allowPartialTrustChain: true }),
      ...(keyExchangeGroups !== undefined && { ecdhCurve: opensslGroups(keyExchangeGroups) }),
    });
  }

  /** Like `open`, with the connection inside TLS as a transport. */
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
        Transport.over(socket, socketAddresses(socket), (transport) =>
          handler.onConnect(transport, socket.alpnProtocol || undefined),
        ),
      onClose: (error) => handler.onClose(error),
      onReached,
    });
  }

  /**
   * Connects and performs the TLS handshake, or performs it on a connected stream. `host`: name of the server, for SNI and the
   * check of its certificate unless the configuration says otherwise. `keepAliveDelay`: milliseconds until TCP keep-alive probes, 0
   * = off. `protocols`: offered by ALPN (RFC 7301), empty = no offer. Returns a function that cancels the attempt.
   */
  open(
    target: TlsCarrier,
    host: string,
    keepAliveDelay: number,
    protocols: readonly string[],
    waiter: SecureWaiter,
  ): () => void {
    let failure: Error | undefined;
    const carrier = target instanceof AdmittedAddress ? target.options : target;
    const socket = nodeTls().connect({ ...carrier, ...this.#options(host, protocols) });
    this.#keepSession(socket);
    if (keepAliveDelay > 0) socket.setKeepAlive(true, keepAliveDelay);
    const failed = (error: Error): void => {
      const text = UNTRUSTED[codeOf(error) ?? ""];
      if (text !== undefined) error.message = `${text}; add its CA to backendTLS.root`;
      failure = error;
    };
    const closed = (): void => waiter.onClose(failure);
    socket.setNoDelay(true);
    socket.on("error", failed);
    socket.on("close", closed);
    if (target instanceof AdmittedAddress)
      socket.once("connect", () => {
        const refused = target.refusedAfter(socket);
        if (refused !== undefined) socket.destroy(refused);
        else waiter.onReached?.();
      });
    socket.once("secureConnect", () => {
      socket.removeListener("error", failed);
      socket.removeListener("close", closed);
      waiter.onSecure(socket);
    });
    return () => socket.destroy();
  }

  /** With TLS 1.3, tickets arrive after the handshake, possibly several (RFC 8446 4.6.1); the latest is used. */
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
      // SNI carries DNS names only, never addresses (RFC 6066 3).
      ...(isIP(hostname) === 0 && hostname !== "" && { servername: hostname }),
      ...(this.#session !== undefined && { session: this.#session }),
      checkServerIdentity: (_name, certificate) => {
        if (insecureHost) return undefined;
        const names = subjectAltNames ?? [hostname];
        if (names.some((name) => isNamed(name, certificate))) return undefined;
        const setting = subjectAltNames === undefined ? "hostname" : "subjectAltNames";
        return new Error(
          `the certificate is for ${shownNames(certificate)}, not for ${names.join(" or ")}; set backendTLS.${setting} to a name that it has`,
        );
      },
    };
  }
}

/** Like `tls.checkServerIdentity`, which does not support URIs (RFC 6125 6.4): these are compared literally. */
function isNamed(name: string, certificate: PeerCertificate): boolean {
  if (!isUri(name)) return nodeTls().checkServerIdentity(name, certificate) === undefined;
  return altNames(certificate.subjectaltname ?? "", "URI").includes(name);
}

/** More names of a certificate would hide the rest of the message. */
const MAX_NAMES = 4;

/** The names of a certificate for a message; without any, that of its subject, which older ones have instead. */
function shownNames({ subjectaltname = "", subject }: PeerCertificate): string {
  const names = subjectaltname.split(", ").filter((each) => each !== "");
  const shown = names.slice(0, MAX_NAMES).map((each) => each.replace(/^(?:DNS|URI|IP Address):/, ""));
  if (names.length > MAX_NAMES) return `${shown.join(", ")} and ${names.length - MAX_NAMES} more`;
  if (names.length > 0) return shown.join(", ");
  return typeof subject?.CN === "string" ? subject.CN : "no name";
}

/** Host names have no colon. */
function isUri(name: string): boolean {
  return name.includes(":") && isIP(name) === 0;
}

/** Key of a pool: connections made with different settings must not be shared. A hash, because settings hold private keys. */
export function tlsIdentity(config: object): string {
  return createHash("sha256").update(JSON.stringify(config)).digest("base64url").slice(0, 16);
}
