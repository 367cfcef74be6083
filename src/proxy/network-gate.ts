import type { Activation } from "../cel/index.ts";
import { ByteQueue } from "../net/byte-queue.ts";
import type { Transport, TransportHandler } from "../net/transport.ts";
import type { NetworkAuthorizer, NetworkDecision } from "../policies/ext-authz/network.ts";
import type { ConnectionSeries } from "../telemetry/metrics.ts";
import type { LiveConnection } from "./tcp/live-connection.ts";

/** What a client sends while it waits is held up to this; more stops the reading. */
const HELD_LIMIT = 64 * 1024;
const GONE = "the connection closed before it was authorized";

/** A connection that wants to come in. */
export interface Arrival {
  readonly transport: Transport;
  /** The client may end its own direction and still wait for an answer, as in plain TCP. */
  readonly halfClose: boolean;
  /** Counters of its listener. */
  readonly series: ConnectionSeries;
  /** Makes the handler of a connection that may come in. */
  readonly enter: (requestMetadata: NetworkMetadata) => TransportHandler;
}

/** What the service has told of a connection; expressions of its requests read it as `extauthz`. */
export type NetworkMetadata = Extract<NetworkDecision, { allowed: true }>["metadata"];

/** The bind of the connection. */
export interface NetworkGateHost {
  /** The connection gets another handler next. */
  onAdmitted(gate: NetworkGate): void;
  /** The service, or its absence, has refused the connection, which is to be closed. */
  onTurnedAway(gate: NetworkGate, arrival: Arrival, why: string): void;
  /** The connection has ended by itself, or is about to. */
  onGateFailure(gate: NetworkGate, message: string): void;
  onFault(error: unknown): void;
}

/**
 * A connection about which a service is being asked. It is read meanwhile, so that a client that leaves is noticed, but
 * nothing of it is looked at.
 */
export class NetworkGate implements TransportHandler, LiveConnection {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly #arrival: Arrival;
  readonly #host: NetworkGateHost;
  readonly #held = new ByteQueue();
  readonly #startedAt = performance.now();
  readonly #cancels: (() => void)[] = [];
  #clientEnded = false;
  #closed = false;

  constructor(arrival: Arrival, host: NetworkGateHost) {
    this.#arrival = arrival;
    this.#host = host;
    this.remoteAddress = arrival.transport.remoteAddress;
    this.remotePort = arrival.transport.remotePort;
  }

  get activity(): LiveConnection["activity"] {
    return { state: "authorizing", ageMs: performance.now() - this.#startedAt };
  }

  /** `variables`: what expressions read of the connection. The decision comes later, never during this call. */
  ask(authorizer: NetworkAuthorizer, variables: Activation): void {
    authorizer
      .ask(variables, (cancel) => (this.#closed ? cancel() : this.#cancels.push(cancel)))
      .then((decision) => this.#decide(decision))
      .catch((error: unknown) => {
        this.onFault(error);
        this.#arrival.transport.destroy();
      });
  }

  abort(reason: string): void {
    if (this.#end()) this.#host.onGateFailure(this, reason);
    this.#arrival.transport.destroy();
  }

  onData(buffer: Buffer, length: number): void {
    if (this.#closed) return;
    this.#held.append(buffer, 0, length);
    if (this.#held.length >= HELD_LIMIT) this.#arrival.transport.pause();
  }

  onEnd(): void {
    if (this.#arrival.halfClose) this.#clientEnded = true;
    else this.abort(GONE);
  }

  /** Nothing is written before the decision. */
  onDrain(): void {}

  onClose(error: Error | undefined): void {
    if (this.#end()) this.#host.onGateFailure(this, error?.message ?? GONE);
  }

  onFault(error: unknown): void {
    this.#host.onFault(error);
  }

  #decide(decision: NetworkDecision): void {
    if (!this.#end()) return;
    if (!decision.allowed) {
      this.#host.onTurnedAway(this, this.#arrival, decision.why);
      return;
    }
    const { transport, enter } = this.#arrival;
    const { bytes, start, end } = this.#held;
    this.#host.onAdmitted(this);
    // Whoever comes next decides anew whether to read.
    transport.resume();
    const next = enter(decision.metadata);
    transport.passTo(next, bytes.subarray(start, end));
    if (this.#clientEnded) next.onEnd();
  }

  /** False when it was over before. */
  #end(): boolean {
    if (this.#closed) return false;
    this.#closed = true;
    for (const cancel of this.#cancels) cancel();
    return true;
  }
}
