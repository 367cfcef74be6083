import type { Rostered } from "../base/roster.ts";
import { ByteQueue } from "./byte-queue.ts";
import type { Transport, TransportHandler } from "./transport.ts";

/** Owner of a stage. Exactly one of the first two calls follows. */
export interface StageOwner {
  /** The stage has done its work; the connection gets its next handler right after this call. */
  onStagePassed(stage: ConnectionStage): void;
  /** The connection has closed in this stage, or is closed right after this call. `message` is for the log. */
  onStageFailed(stage: ConnectionStage, message: string): void;
  /** A defect of the gateway: the stage has thrown. The connection is closed and `onStageFailed` follows. */
  onFault(error: unknown): void;
}

/**
 * One stage that a connection passes before it is served: reading a PROXY header, a TLS handshake, waiting for an authorization,
 * opening a tunnel through a proxy. This class has what they share. It holds the bytes that arrive until the stage has decided,
 * enforces a deadline, and ends the stage once, by whichever comes first: a decision, the deadline, the peer, or a defect. Most
 * stages write nothing to the peer.
 */
export abstract class ConnectionStage implements TransportHandler, Rostered {
  place = -1;
  /** Bytes from the peer that the stage has not used. */
  protected readonly held = new ByteQueue();
  protected readonly startedAt = performance.now();
  readonly #owner: StageOwner;
  #transport: Transport | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** The peer has sent FIN, and the stage allows that. */
  #peerEnded = false;
  #closed = false;

  protected constructor(owner: StageOwner) {
    this.#owner = owner;
  }

  /** For the task dump: `handshake`. */
  protected abstract readonly state: string;

  /** The log message if the peer closes first: `the connection closed before a PROXY header`. */
  protected abstract readonly closedEarly: string;

  /** `held` has grown. A stage that cannot decide yet returns. */
  protected abstract onHeld(): void;

  /** The deadline has passed: the stage decides, or rejects. */
  protected abstract onExpired(): void;

  /** The stage has ended: cancels what it waits for. */
  protected onClosed(): void {}

  /** The connection in this stage; it exists from `begin` on. */
  protected get transport(): Transport {
    if (this.#transport === undefined) throw new Error("the stage has not begun");
    return this.#transport;
  }

  /** `timeoutMs`: milliseconds until `onExpired`; undefined = what the stage waits for has its own deadline. */
  protected begin(transport: Transport, timeoutMs: number | undefined): void {
    this.#transport = transport;
    if (timeoutMs !== undefined) this.#timer = setTimeout(() => this.onExpired(), timeoutMs);
  }

  protected get closed(): boolean {
    return this.#closed;
  }

  get remoteAddress(): string {
    return this.transport.remoteAddress;
  }

  get remotePort(): number {
    return this.transport.remotePort;
  }

  get activity(): { readonly state: string; readonly ageMs: number } {
    return { state: this.state, ageMs: performance.now() - this.startedAt };
  }

  /** Does nothing: a connection in a stage is about to carry its first stream. */
  closeIfIdle(): void {}

  /** Ends stage and connection from outside; `reason` is for the log. */
  terminate(reason: string): void {
    this.reject(`${reason} before the connection was done`);
  }

  /** Ends stage and connection; `message` is for the log. */
  protected reject(message: string): void {
    this.fail(message);
    this.#transport?.destroy();
  }

  onData(buffer: Buffer, length: number): void {
    if (this.#closed) return;
    this.held.append(buffer, 0, length);
    this.onHeld();
  }

  /** A peer that has sent FIN before the stage is done has given up, unless the stage says otherwise (`allowHalfClose`). */
  onEnd(): void {
    if (this.allowHalfClose) this.#peerEnded = true;
    else this.reject(this.closedEarly);
  }

  /** Whether the peer may send FIN and still wait for a response, as in plain TCP. */
  protected get allowHalfClose(): boolean {
    return false;
  }

  onDrain(): void {}

  onClose(error: Error | undefined): void {
    this.fail(error?.message ?? this.closedEarly);
  }

  onFault(error: unknown): void {
    this.#owner.onFault(error);
  }

  /** Ends the stage, for a connection that is closed or about to be. Does nothing when the stage has ended. */
  protected fail(message: string): void {
    if (this.#end()) this.#owner.onStageFailed(this, message);
  }

  /** Ends the stage as passed. The connection, or the TLS stream over it, belongs to the next stage. False = it had ended before. */
  protected leave(): boolean {
    if (!this.#end()) return false;
    this.#owner.onStagePassed(this);
    return true;
  }

  /** Ends the stage as passed. The next handler gets the held bytes, and the FIN that arrived meanwhile. */
  protected pass(next: () => TransportHandler): void {
    if (!this.leave()) return;
    const { transport } = this;
    // The next handler decides again whether to read.
    transport.resume();
    const handler = next();
    transport.passTo(handler, this.held.view());
    if (this.#peerEnded) handler.onEnd();
  }

  /** False when it was closed before. */
  #end(): boolean {
    if (this.#closed) return false;
    this.#closed = true;
    clearTimeout(this.#timer);
    this.onClosed();
    return true;
  }
}
