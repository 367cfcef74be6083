/** The third stage of a connection: TLS, terminated or passed through, by the server name. */
import type { PendingChallenges } from "../../acme/challenges.ts";
import { ConnectionStage } from "../../net/connection-stage.ts";
import type { Transport, TransportHandler } from "../../net/transport.ts";
import { ACME_TLS, MAX_CLIENT_HELLO, parseClientHello } from "../../tls/tls-client-hello.ts";
import { type HandshakeWaiter, TlsTerminator } from "../../tls/tls-terminator.ts";
import { makeChallengeCertificate } from "../../tls/x509/self-signed.ts";
import type { CompiledListener } from "../compile/compiled.ts";
import { type Arrival, type Ingress, type LiveConnection, type Next, REJECTED } from "./arrival.ts";
import { addressRefusal } from "./ip-access.ts";

/** Milliseconds for ClientHello and handshake together; default of `frontendPolicies.tls.handshakeTimeout`. */
const HANDSHAKE_TIMEOUT_MS = 15_000;

/** Third stage: TLS, which selects the listener. TCP has one listener; plaintext HTTP selects one for each request. */
export function selectTlsListener(arrival: Arrival, ingress: Ingress, next: Next): TransportHandler {
  const { protocol, listeners, frontend } = ingress.bind;
  // A port of tunnels speaks CONNECT in plaintext; TLS is inside the tunnels.
  if (protocol === "http" || (frontend.connect === "tunnel" && !arrival.tunnelled)) return next(arrival);
  if (protocol === "tcp") {
    const selected = { ...arrival, listener: listeners.find("") };
    const denial = addressRefusal(arrival.transport.remoteAddress, selected.listener, ingress);
    if (denial === undefined) return next(selected);
    ingress.onRejected(selected, denial);
    return REJECTED;
  }
  const stage = new TlsStage(arrival, ingress, next);
  ingress.onStageBegun(stage);
  return stage;
}

/** Milliseconds for an ACME server to close its side after a validation. */
const CLOSE_MS = 5_000;

/** Why a handshake is rejected whose server name no listener has. */
function noListener(serverName: string): string {
  return `no TLS listener match for ${serverName === "" ? "a client that names no server" : serverName}`;
}

/**
 * Reads the ClientHello, finds the listener by its server name (SNI, RFC 6066 3), then terminates TLS or passes it through. Nothing is
 * sent before a listener is found, so a port scan learns no certificate. The deadline covers the whole handshake: otherwise,
 * clients that stop in the middle could use up `maxConnections` at no cost.
 */
class TlsStage extends ConnectionStage implements LiveConnection {
  readonly #arrival: Arrival;
  readonly #ingress: Ingress;
  readonly #next: Next;

  constructor(arrival: Arrival, ingress: Ingress, next: Next) {
    super(ingress);
    this.#arrival = arrival;
    this.#ingress = ingress;
    this.#next = next;
    this.begin(arrival.transport, ingress.bind.frontend.handshakeTimeout ?? HANDSHAKE_TIMEOUT_MS);
  }

  protected readonly state = "handshake";
  protected readonly closedEarly = "the connection closed during the handshake";

  protected onExpired(): void {
    this.reject("the TLS handshake took too long");
  }

  /** A ClientHello may arrive in several records and reads; each time it is parsed from its start, bounded by MAX_CLIENT_HELLO. */
  protected onHeld(): void {
    const hello = this.held.view();
    const parsed = parseClientHello(hello);
    if (parsed.state === "invalid") this.reject(parsed.detail);
    else if (parsed.state === "complete") this.#route(parsed.serverName, hello, parsed.validation ?? false);
    else if (hello.length > MAX_CLIENT_HELLO) this.reject("the ClientHello is too large");
  }

  #route(serverName: string, hello: Buffer, validation: boolean): void {
    const listener = this.#ingress.bind.listeners.find(serverName);
    if (listener === undefined) {
      this.reject(noListener(serverName));
    } else if (validation && listener.challenges !== undefined) {
      void this.#validate(listener.challenges, serverName, hello);
    } else if (this.#isDenied(listener, serverName)) {
      return;
    } else if (listener.terminator !== undefined) {
      this.#terminateTls(listener, listener.terminator, serverName, hello);
    } else this.pass(() => this.#next({ ...this.#arrival, listener, serverName }));
  }

  /** Whether the listener does not admit the client, which then has been rejected: before its handshake. */
  #isDenied(listener: CompiledListener, serverName: string): boolean {
    const denial = addressRefusal(this.transport.remoteAddress, listener, this.#ingress);
    if (denial !== undefined && this.leave())
      this.#ingress.onRejected({ ...this.#arrival, listener, serverName }, denial);
    return denial !== undefined;
  }

  /** Shows an ACME server the certificate that it asks for (RFC 8737 3), and closes the connection after the handshake. */
  async #validate(challenges: PendingChallenges, name: string, hello: Buffer): Promise<void> {
    this.transport.pause();
    const keyAuthorization = await challenges.forTls(name);
    if (this.closed) return;
    if (keyAuthorization === undefined) {
      this.reject(`no validation of ${name} is pending`);
      return;
    }
    const identity = makeChallengeCertificate(name, keyAuthorization, Date.now());
    const { tickets } = this.#ingress.services;
    // The terminator reads from here on.
    this.transport.resume();
    const terminator = new TlsTerminator(`validation of ${name}`, identity, [ACME_TLS], tickets, () => {});
    terminator.accept(this.transport, hello, name, {
      onSecure: (transport) => {
        this.fail(`it was a validation of ${name} by an ACME server`);
        return closing(transport);
      },
      onHandshakeFailure: (message) => this.fail(`TLS handshake failed: ${message}`),
    });
  }

  /** From here on, Node's TLS owns the socket, and the terminator reports failures. */
  #terminateTls(listener: CompiledListener, terminator: TlsTerminator, serverName: string, hello: Buffer): void {
    const waiter: HandshakeWaiter = {
      onSecure: (transport) => {
        this.leave();
        this.#ingress
          .seriesOf(listener)
          .handshakes()
          .observe((performance.now() - this.startedAt) / 1000);
        return this.#next({ ...this.#arrival, transport, listener, serverName });
      },
      onHandshakeFailure: (message) => this.fail(`TLS handshake failed: ${message}`),
    };
    terminator.accept(this.transport, hello, serverName, waiter, this.#ingress.services.assumedCertificate);
  }
}

/** Ends a connection that is not used after its handshake, once what was written is sent. */
function closing(transport: Transport): TransportHandler {
  const late = setTimeout(() => transport.destroy(), CLOSE_MS);
  transport.end();
  return {
    onData() {},
    onEnd: () => transport.destroy(),
    onDrain() {},
    onClose: () => clearTimeout(late),
    onFault() {},
  };
}
