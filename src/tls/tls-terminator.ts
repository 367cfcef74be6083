import { constants, X509Certificate } from "node:crypto";
import type { Socket } from "node:net";
import type { SecureContextOptions, Server, TLSSocket } from "node:tls";
import { messageOf } from "../base/errors.ts";
import { nodeTls } from "../base/lazy-node.ts";
import { Roster, type Rostered } from "../base/roster.ts";
import { type Addresses, Peer } from "../net/addresses.ts";
import { tlsServers } from "../net/node-internals-tls.ts";
import { type ByteStream, type TlsSession, Transport, type TransportHandler } from "../net/transport.ts";
import { whyRejected } from "./assumed-certificate.ts";
import { CertificateChoice, type ServerIdentity } from "./certificate-choice.ts";
import { ClientCertificate } from "./client-certificate.ts";
import { LeafCache, type LeafListener } from "./leaf-cache.ts";
import { ListenerTickets, SESSION_LIFETIME_S, type TicketSecrets } from "./ticket-keys.ts";
import { defaultCiphers, opensslCipher, opensslGroups } from "./tls-ciphers.ts";
import type { PendingCertificate, TlsServer } from "./tls-settings.ts";
import { readOcspStaple } from "./x509/ocsp.ts";
import { makeSelfSigned } from "./x509/self-signed.ts";

const HANDSHAKE = Symbol("handshake");

const CLOSED = "the connection closed during the handshake";

/** Receives the result of a handshake; exactly one of the two is called. */
export interface HandshakeWaiter {
  /** Returns the handler of the bytes inside TLS. */
  onSecure(transport: Transport): TransportHandler;
  onHandshakeFailure(message: string): void;
}

/** The certificate that a client is assumed to have, its chain after it; asked for if the listener asks its clients for one. */
export type AssumedCertificate = () => readonly X509Certificate[] | undefined;

interface Pending extends Rostered {
  /** The connection below TLS. */
  readonly carrier: Carrier;
  readonly waiter: HandshakeWaiter;
  readonly session: Omit<TlsSession, "protocol">;
  /** undefined: the handshake says which certificate the client has. */
  readonly assumed: readonly X509Certificate[] | undefined;
  /** The client's addresses: those of its PROXY header where there was one, which the socket does not have. */
  readonly from: Addresses;
}

/** Refers to its handshake while that lasts, because Node only reports the socket of a handshake that has ended. */
type Carrier = ByteStream & { [HANDSHAKE]?: Pending | undefined };

/**
 * OpenSSL's options for a server's configuration, which `checkTlsServer` has found usable. `identity`: the certificate and key of `tls`, or
 * a pair that they have signed.
 */
export function serverContext(tls: TlsServer, { cert, key }: ServerIdentity): SecureContextOptions {
  return {
    cert,
    key,
    minVersion: tls.minVersion ?? "TLSv1.2",
    maxVersion: tls.maxVersion ?? "TLSv1.3",
    // Without a list, Node.js would read all CAs that clients trust by default.
    ca: tls.clientCa ?? [],
    ...(tls.keyExchangeGroups !== undefined && {
      ecdhCurve: opensslGroups(tls.keyExchangeGroups),
    }),
    // HTTP/2 must not have it over TLS 1.2 (RFC 9113 9.2.1), and for the client each new handshake is cheap (CVE-2011-1473).
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ciphers: tls.cipherSuites?.map(cipherName).join(":") ?? defaultCiphers(nodeTls().DEFAULT_CIPHERS),
  };
}

/**
 * Terminates TLS for one listener. The server name was read before (tls-client-hello.ts), so that each listener can have its own
 * versions, suites and client CA, not only its own certificate. Sessions are resumed within a listener only, by any worker; see
 * ticket-keys.ts.
 */
export class TlsTerminator {
  /**
   * Identifies how client certificates are validated; undefined = clients are not asked for one. Made once, because each request
   * compares it with that of its connection: a new string each time costs 0.4 µs with one CA, 0.2 ms with a bundle of 200 KB.
   */
  readonly clientValidation: string | undefined;
  readonly #name: string;
  readonly #settings: TlsServer;
  readonly #protocols: readonly string[];
  readonly #tickets: TicketSecrets;
  readonly #onMade: LeafListener;
  /** Set if the listener has a CA; made with its first connection, because reading keys for thousands of listeners would delay a reload. */
  #leaves: LeafCache | undefined;
  /** Set if the listener has several certificates; made with the first connection. */
  #certificates: CertificateChoice | undefined;
  /** Set if clients get one until there is a certificate; made with the first connection. */
  #selfSigned: ServerIdentity | undefined;
  /** Made with the first connection that uses the identity, and kept as long as the identity. */
  readonly #servers = new WeakMap<ServerIdentity, Server>();
  readonly #pending = new Roster<Pending>();

  /**
   * `name`: the unique name of the listener. `protocols` are offered by ALPN (RFC 7301); empty = the client's offer is ignored.
   * `onMade`: called for each certificate that a dynamic CA makes.
   */
  constructor(
    name: string,
    settings: TlsServer,
    protocols: readonly string[],
    tickets: TicketSecrets,
    onMade: LeafListener,
  ) {
    // Loaded here, with the configuration, so that the first client does not wait for it.
    nodeTls();
    const { clientCa, clientCertificates = "required" } = settings;
    this.clientValidation = clientCa === undefined ? undefined : `${clientCertificates} ${clientCa}`;
    this.#name = name;
    this.#settings = settings;
    this.#tickets = tickets;
    this.#protocols = protocols;
    this.#onMade = onMade;
  }

  /** Takes over a connection of which `hello` has been read. Destroying `transport` cancels the handshake. */
  accept(
    transport: Transport,
    hello: Buffer,
    serverName: string,
    waiter: HandshakeWaiter,
    assumedCertificate?: AssumedCertificate,
  ): void {
    let identity: ServerIdentity;
    const assumed = this.#settings.clientCa === undefined ? undefined : assumedCertificate?.();
    try {
      identity = this.#identityFor(serverName);
      const rejected = assumed && this.#whyRejected(assumed);
      if (rejected !== undefined && !this.admitsAll)
        throw new Error(`the client's certificate was rejected: ${rejected}`);
    } catch (error) {
      waiter.onHandshakeFailure(messageOf(error));
      transport.destroy();
      return;
    }
    const from = new Peer(transport);
    const carrier: Carrier = transport.release(hello);
    const session = { serverName, clientValidation: this.clientValidation, client: undefined };
    const pending = { carrier, waiter, session, assumed, from, place: -1 };
    carrier[HANDSHAKE] = pending;
    this.#pending.set(pending, undefined);
    carrier.once("close", () => {
      // Node.js reports the reason of a failed handshake after the close.
      if (carrier[HANDSHAKE] !== undefined) setImmediate(() => this.#fail(carrier, CLOSED));
    });
    // A client that ends its direction during the handshake is gone; afterwards, it may still read.
    carrier.allowHalfOpen = false;
    if (!("remoteAddress" in carrier)) {
      // Node does not report the stream of a handshake inside the process, so each such stream gets its own server.
      this.#createServer(identity, serverName, () => carrier, assumed === undefined).emit("connection", carrier);
      return;
    }
    let server = this.#servers.get(identity);
    if (server === undefined) {
      server = this.#createServer(identity, serverName, (socket) => this.#carrierOf(socket));
      this.#servers.set(identity, server);
    }
    server.emit("connection", carrier);
  }

  /** Clients without a valid certificate may connect too. */
  get admitsAll(): boolean {
    return this.#settings.clientCertificates === "optional";
  }

  /** Throws an Error when there is no certificate for this name. */
  #identityFor(serverName: string): ServerIdentity {
    const { cert, key, ocspStaple, otherCertificates = [], dynamicCa, pending } = this.#settings;
    if (pending !== undefined) return this.#whilePending(pending);
    if (otherCertificates.length > 0) {
      this.#certificates ??= new CertificateChoice([{ cert, key, ocspStaple }, ...otherCertificates]);
      return this.#certificates.for(serverName);
    }
    if (dynamicCa === undefined) return this.#settings;
    this.#leaves ??= new LeafCache(cert, key, dynamicCa, this.#onMade);
    return this.#leaves.get(serverName);
  }

  #whilePending({ name, until }: PendingCertificate): ServerIdentity {
    if (until === "refuse") throw new Error(`there is no certificate for ${name} yet; tgctl certs says why`);
    this.#selfSigned ??= makeSelfSigned(name, Date.now());
    return this.#selfSigned;
  }

  #createServer(
    identity: ServerIdentity,
    serverName: string,
    carrierOf: (socket: Socket) => Carrier | undefined,
    asksForCertificate = true,
  ): Server {
    const tickets = this.#ticketsOf(identity, serverName);
    const server = nodeTls().createServer({
      ...serverContext(this.#settings, identity),
      sessionIdContext: tickets.id,
      sessionTimeout: SESSION_LIFETIME_S,
      requestCert: asksForCertificate && this.#settings.clientCa !== undefined,
      rejectUnauthorized: !this.admitsAll,
      ...(this.#protocols.length > 0 && { ALPNProtocols: [...this.#protocols] }),
    });
    tlsServers.setTickets(server, tickets);
    // The CA that issued the clients' certificates is enough: OpenSSL would also require those above it.
    if (this.#settings.clientCa !== undefined) tlsServers.trustIntermediates(server);
    // The stage that waits for the handshake has its own deadline.
    tlsServers.noDeadline(server);
    if (identity.ocspStaple !== undefined) staple(server, identity.ocspStaple, identity.cert);
    server.on("secureConnection", (socket) => this.#secured(socket, carrierOf(socket)));
    server.on("tlsClientError", (error, socket) => this.#fail(carrierOf(socket), failureOf(error, socket)));
    return server;
  }

  /** A session is resumed with the same identity. Workers make different certificates for one name, so with a dynamic CA the name counts. */
  #ticketsOf({ cert }: ServerIdentity, serverName: string): ListenerTickets {
    const { dynamicCa, clientCa } = this.#settings;
    const listener = [this.#name, this.#protocols, this.#settings, dynamicCa === undefined ? cert : serverName];
    return new ListenerTickets(this.#tickets, JSON.stringify(listener), clientCa === undefined);
  }

  /** Node's server does not report which of its connections a finished handshake belongs to. */
  #carrierOf(socket: Socket): Carrier | undefined {
    const carrier = tlsServers.carrierOf(socket);
    if (carrier !== undefined) return carrier;
    const key = identify(socket);
    return this.#pending.items().find((each) => identify(each.carrier) === key)?.carrier;
  }

  /** Ends the wait for the handshake of `carrier`; undefined: nothing waits. */
  #take(carrier: Carrier | undefined): Pending | undefined {
    const pending = carrier?.[HANDSHAKE];
    if (carrier === undefined || pending === undefined) return undefined;
    carrier[HANDSHAKE] = undefined;
    this.#pending.delete(pending);
    return pending;
  }

  #secured(socket: TLSSocket, of: Carrier | undefined): void {
    const pending = this.#take(of);
    if (pending === undefined) {
      socket.destroy();
      return;
    }
    const { carrier, waiter, session, assumed, from } = pending;
    const certificate = assumed === undefined ? this.#verifiedOf(socket) : this.#verifiedAmong(assumed);
    const client = certificate === undefined ? undefined : new ClientCertificate(certificate);
    carrier.allowHalfOpen = true;
    socket.allowHalfOpen = true;
    const accept = (transport: Transport): TransportHandler => {
      // If the signature of a certificate that need not be valid is wrong, OpenSSL's complaint follows as an error of the connection.
      if (this.admitsAll && !socket.authorized) transport.tolerateErrors();
      return waiter.onSecure(transport);
    };
    Transport.over(socket, from, accept, carrier, { ...session, protocol: socket.alpnProtocol || "", client });
  }

  #verifiedOf(socket: TLSSocket): X509Certificate | undefined {
    const verified = this.#settings.clientCa !== undefined && socket.authorized;
    return verified ? socket.getPeerX509Certificate() : undefined;
  }

  #verifiedAmong(assumed: readonly X509Certificate[]): X509Certificate | undefined {
    return this.#whyRejected(assumed) === undefined ? assumed[0] : undefined;
  }

  #whyRejected(assumed: readonly X509Certificate[]): string | undefined {
    return whyRejected(assumed, this.#settings.clientCa ?? "");
  }

  #fail(carrier: Carrier | undefined, message: string): void {
    const pending = this.#take(carrier);
    if (pending === undefined) return;
    pending.waiter.onHandshakeFailure(message);
    pending.carrier.destroy();
  }
}

/** Clients that request the status of the certificate get it in the handshake (RFC 6066 8), until the CA's response expires. */
function staple(server: Server, base64: string, cert: ServerIdentity["cert"]): void {
  const [first = ""] = [cert].flat();
  const { response, expires } = readOcspStaple(Buffer.from(base64, "base64"), new X509Certificate(first));
  // Node accepts null: nothing is sent then.
  const nothing = null as unknown as Buffer;
  server.on("OCSPRequest", (_certificate, _issuer, answer) => answer(null, Date.now() < expires ? response : nothing));
}

/** Why a handshake has failed. If Node.js rejects the client's certificate, it closes the connection, and only the socket has the reason. */
function failureOf(error: NodeJS.ErrnoException, { authorizationError }: TLSSocket): string {
  // A code such as CERT_HAS_EXPIRED; its type says Error.
  if (authorizationError) return `the client's certificate was rejected: ${String(authorizationError)}`;
  return error.code === "ECONNRESET" ? CLOSED : messageOf(error);
}

/** The four-tuple of a connection; streams inside the process have none. */
function identify(stream: ByteStream): string | undefined {
  if (!("remoteAddress" in stream)) return undefined;
  const { remoteAddress, remotePort, localAddress, localPort } = stream as Socket;
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

function cipherName(name: string): string {
  return opensslCipher(name) ?? name;
}
