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
 * One step that a connection passes before its bytes are served: it reads a PROXY header, makes a TLS handshake, waits for an
 * authorization, opens a tunnel through a proxy. This is what all of them share. It holds the bytes that arrive until the step
 * has decided, gives the step a deadline, and ends it once, by whichever comes first: a decision, the deadline, the peer, a
 * defect. Most steps write nothing to the peer.
 */
export abstract class ConnectionStage implements TransportHandler, Rostered {
  place = -1;
  /** What the peer has sent in this stage and the stage has not used. */
  protected readonly held = new ByteQueue();
  protected readonly startedAt = performance.now();
  readonly #owner: StageOwner;
  #transport: Transport | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** The peer has sent FIN, and the stage has let it. */
  #peerEnded = false;
  #closed = false;

  protected constructor(owner: StageOwner) {
    this.#owner = owner;
  }

  /** For the task dump: `handshake`. */
  protected abstract readonly state: string;

  /** What the stage waits for, for the log: `the connection closed before a PROXY header`. */
  protected abstract readonly closedEarly: string;

  /** `held` has grown. A stage that cannot decide yet returns. */
  protected abstract onHeld(): void;

  /** The deadline has passed: the stage decides, or rejects. */
  protected abstract onExpired(): void;

  /** The stage has ended, one way or another: gives up what it waits for. */
  protected onClosed(): void {}

  /** The connection in this stage; it exists from `begin` on. */
  protected get transport(): Transport {
    if (this.#transport === undefined) throw new Error("the stage has not begun");
    return this.#transport;
  }

  /** `timeoutMs`: milliseconds until `onExpired`; undefined = whatever the stage waits for has a deadline of its own. */
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

  /** A connection in a stage is not idle: it is about to carry its first stream. */
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

  /** Ends the stage as done. The connection, or what TLS has made of it, belongs to what comes next. False = it had ended before. */
  protected leave(): boolean {
    if (!this.#end()) return false;
    this.#owner.onStagePassed(this);
    return true;
  }

  /** Ends the stage as done. The next handler gets what is held, and the FIN that came in between. */
  protected pass(next: () => TransportHandler): void {
    if (!this.leave()) return;
    const { transport } = this;
    // The next handler decides anew whether to read.
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
