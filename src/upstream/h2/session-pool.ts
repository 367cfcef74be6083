import type { ErrorCode } from "../../base/errors.ts";
import type { ConnectTimes, ConnectWaiter } from "../connections/connect-attempt.ts";
import type { UpstreamConnection } from "../connections/connection.ts";
import { type Wait, WaitQueue } from "../connections/wait-queue.ts";
import type { ProcessCount } from "../loads/process-count.ts";
import type { SessionOwner, UpstreamSession } from "./session.ts";

/** Waits for a connection or session to carry a request; gets exactly one call. A session must be used during that call. */
export interface UpstreamWaiter extends ConnectWaiter<UpstreamConnection> {
  /** Accepts only a session whose server has sent its SETTINGS. Default: any. */
  readonly needsSettings?: boolean;
  onSession(session: UpstreamSession): void;
}

/**
 * Milliseconds for which a server may forbid streams (SETTINGS_MAX_CONCURRENT_STREAMS of 0) on a connection, which it should do only briefly
 * (RFC 9113 6.5.2). After that the connection takes no more requests.
 */
const BARRED_MS = 1000;
/** If a server forbids streams on this many connections at a time, no others are opened. */
const MAX_BARRED = 3;
/** Milliseconds for the SETTINGS of a server that may speak HTTP/1.1 only. Servers of HTTP/2 send them in the first round trip. */
const GUESS_MS = 1000;
const NO_SETTINGS = "the upstream did not send its SETTINGS of HTTP/2 in time";
const BARRED = "the upstream allows no requests on its connections (SETTINGS_MAX_CONCURRENT_STREAMS is 0)";

/** A new connection, by the protocol that was negotiated. */
type Opened = UpstreamSession | UpstreamConnection;

/** Opens the connections of a pool of sessions. */
export interface SessionOpener {
  /** `http1`: an HTTP/1.1 connection, because the server speaks nothing else. Returns a function that cancels it. */
  connectHttp2(waiter: ConnectWaiter<Opened>, http1: boolean): () => void;
  /** Takes over a connection that turned out to speak HTTP/1.1 and for which no request is waiting. */
  release(connection: UpstreamConnection): void;
  /** The connection of a session is closed. */
  onSessionGone(): void;
  /** Another connection may be opened. */
  readonly hasRoom: boolean;
  /** Requests wait for connections of HTTP/1.1. */
  readonly crowded: boolean;
  /** Closes an idle HTTP/1.1 connection, so that another one may be opened. */
  makeRoom(): void;
  /** The guess that the server speaks HTTP/2 was wrong. `answered`: it has responded in HTTP/1.1. */
  onGuessFailed(answered: boolean): void;
  /** A defect of the gateway has ended a session. */
  onFault(error: unknown): void;
}

interface SessionLimits {
  /** Requests that wait for room. */
  readonly maxPendingRequests: number;
  /** Counts them; by default, those of this pool. */
  readonly pending?: ProcessCount;
  /**
   * Milliseconds that a request waits for room, and within which a connected server has to send its SETTINGS.
   */
  readonly connectTimeout: number;
  /** Milliseconds that an idle session is kept. */
  readonly idleTimeout: number;
  /** Idle sessions that are kept; undefined = all. */
  readonly maxIdle: number | undefined;
}

/**
 * The sessions with one target. A request takes the first session with room for another stream, so that the others can time out. If
 * all are full, it waits, first come first served, until a stream ends or a new connection is ready. The pool opens as many
 * connections as the waiting requests need.
 */
export class SessionPool implements SessionOwner {
  readonly #opener: SessionOpener;
  readonly #limits: SessionLimits;
  /** Sessions that accept requests. */
  readonly #sessions: UpstreamSession[] = [];
  /** Sessions that end with their last stream, or wait for the server to close. */
  readonly #leaving = new Set<UpstreamSession>();
  readonly #waiting: WaitQueue<UpstreamWaiter>;
  /** Connections that are being opened, or whose SETTINGS have not arrived: waiting requests may still fit on them. */
  #coming = 0;
  /** Requests that a connection is expected to carry at a time: the limit that the newest one has announced. */
  #perConnection = Number.POSITIVE_INFINITY;
  /** Requests that were waiting when a guess failed, and get connections of HTTP/1.1. */
  #http1Wanted = 0;
  /** The server has sent SETTINGS on its last connection, so HTTP/2 is no longer a guess. */
  #proven = false;
  /** The server has forbidden streams on all connections for too long: requests fail until it allows some. */
  #barred = false;
  #closed = false;

  constructor(opener: SessionOpener, limits: SessionLimits) {
    this.#opener = opener;
    this.#limits = limits;
    const { maxPendingRequests, connectTimeout, pending } = limits;
    this.#waiting = new WaitQueue(maxPendingRequests, connectTimeout, () => this.#coming === 0, pending);
  }

  /** A session with room, to be used at once. If undefined, call `wait`. */
  takeIdle(needsSettings = false): UpstreamSession | undefined {
    return this.#waiting.size > 0 ? undefined : this.#roomy(needsSettings);
  }

  /** Queues for room. */
  wait(waiter: UpstreamWaiter): Wait {
    const wait = this.#waiting.add(waiter);
    this.grow();
    return wait;
  }

  /** Numbers of waiting and of rejected requests. */
  get queue(): Pick<WaitQueue<UpstreamWaiter>, "size" | "overflows"> {
    return this.#waiting;
  }

  get idle(): number {
    return this.#sessions.filter(({ streams }) => streams === 0).length;
  }

  /** Sessions whose server allows no streams. */
  get barred(): number {
    return this.#sessions.filter(({ limit }) => limit === 0).length;
  }

  /** Gives an HTTP/1.1 connection to the first waiter. False when the queue is empty. */
  hand(connection: UpstreamConnection): boolean {
    const waiter = this.#waiting.shift();
    waiter?.onConnection(connection);
    return waiter !== undefined;
  }

  /** Closes an idle session. False if all are in use. Not one without the SETTINGS of its server: requests may be waiting for it. */
  closeIdle(): boolean {
    const session = this.#sessions.find(({ streams, settled }) => streams === 0 && settled);
    session?.close();
    return session !== undefined;
  }

  /** A connection waits for the SETTINGS of a server that may speak HTTP/1.1 only. */
  get guessing(): boolean {
    return this.#sessions.some((session) => !session.settled && this.#guessed(session));
  }

  /** Whether the end of a session before its SETTINGS would mean that its server speaks HTTP/1.1 only. */
  #guessed({ isGuess, speaksHttp1 }: UpstreamSession): boolean {
    return isGuess && (speaksHttp1 || !this.#proven);
  }

  /** Closes sessions that were idle for too long, whose server has not sent its SETTINGS in time, forbids streams, or is silent. */
  sweep(now: number): void {
    const { idleTimeout, connectTimeout } = this.#limits;
    for (const session of [...this.#sessions, ...this.#leaving]) {
      if (!session.settled && session.openedAt < now - connectTimeout) session.abort(NO_SETTINGS);
      else if (session.barredSince > 0 && session.barredSince < now - BARRED_MS) this.#leaveBarred(session);
      else if (session.streams === 0 && session.idleSince < now - idleTimeout) session.close();
      session.sweep(now);
    }
  }

  /** A guess fails early, to leave time for HTTP/1.1. */
  #limitGuess(session: UpstreamSession): void {
    const giveUp = () => {
      if (!session.settled && this.#guessed(session) && this.#sessions.includes(session)) session.abort(NO_SETTINGS);
    };
    setTimeout(giveUp, Math.min(GUESS_MS, this.#limits.connectTimeout / 2)).unref();
  }

  /** Waiting requests fail if the server allows streams on no other connection. */
  #leaveBarred(session: UpstreamSession): void {
    if (!this.#sessions.includes(session)) return;
    this.#barred = this.#coming === 0 && this.#sessions.every(({ limit }) => limit === 0);
    session.close();
    this.grow();
  }

  /** Closes idle sessions now, and the others when their streams have ended. */
  close(): void {
    this.#closed = true;
    // Requests that wait for the SETTINGS of a server still use it.
    for (const session of [...this.#sessions]) if (session.settled || this.#waiting.size === 0) session.close();
  }

  // ── from the sessions ──

  onSettled(session: UpstreamSession): void {
    this.#coming--;
    this.#proven = true;
    if (session.limit > 0) this.#perConnection = session.limit;
    this.onRoom();
    if (session.streams === 0) this.onIdle(session);
  }

  onRoom(): void {
    for (;;) {
      const { first } = this.#waiting;
      const session = first && this.#roomy(first.needsSettings);
      if (session === undefined) break;
      if (session.settled) this.#barred = false;
      this.#waiting.shift()?.onSession(session);
    }
    this.grow();
  }

  onIdle(session: UpstreamSession): void {
    const { maxIdle } = this.#limits;
    // Its SETTINGS will let the waiting requests use it.
    if (!session.settled && this.#waiting.size > 0) return;
    const tooMany = maxIdle !== undefined && this.idle > maxIdle;
    if (this.#closed || tooMany || this.#opener.crowded) session.close();
  }

  onRetired(session: UpstreamSession): void {
    const index = this.#sessions.indexOf(session);
    if (index === -1) return;
    this.#sessions.splice(index, 1);
    this.#leaving.add(session);
    if (!session.settled) this.#neverSettled(session);
  }

  /** The requests that wait for the server's SETTINGS are sent in HTTP/1.1 if HTTP/2 was a guess, otherwise they fail. */
  #neverSettled(session: UpstreamSession): void {
    const { failure, speaksHttp1, times } = session;
    const guessFailed = this.#guessed(session);
    // Without a failure, the gateway itself closes it.
    if (failure !== undefined) this.#proven = false;
    if (failure === undefined || !guessFailed) {
      this.#failed("TG_UPSTREAM_FAILED", failure ?? "", times);
      return;
    }
    this.#coming--;
    this.#opener.onGuessFailed(speaksHttp1);
    this.#perConnection = 1;
    this.#http1Wanted = this.#waiting.size;
    this.grow();
  }

  onGone(session: UpstreamSession): void {
    this.onRetired(session);
    this.#leaving.delete(session);
    this.#opener.onSessionGone();
    this.grow();
  }

  onFault(error: unknown): void {
    this.#opener.onFault(error);
  }

  /** The first session with room for another stream; the later ones can time out. */
  #roomy(needsSettings = false): UpstreamSession | undefined {
    for (const session of this.#sessions)
      if (session.room && (session.settled || !(needsSettings || session.isGuess))) return session;
    return undefined;
  }

  /** Opens connections for waiting requests, as many as the limit allows. */
  grow(): void {
    if (this.#waiting.size === 0) {
      this.#http1Wanted = 0;
      return;
    }
    const { barred } = this;
    if (barred > 0 && this.#barred && barred === this.#sessions.length) {
      // Deferred: a waiter must not fail before `wait` has returned.
      queueMicrotask(() => this.#waiting.failAll("TG_UPSTREAM_FAILED", BARRED, {}));
      return;
    }
    // The next connection may allow streams, but a server that never does must not get more and more connections.
    const most = barred === 0 ? Number.POSITIVE_INFINITY : MAX_BARRED - barred;
    while (
      this.#waiting.size > 0 &&
      this.#coming < most &&
      (this.#coming === 0 || this.#waiting.size > this.#coming * this.#perConnection)
    ) {
      if (!this.#opener.hasRoom) {
        if (barred === 0) this.#opener.makeRoom();
        return;
      }
      this.#coming++;
      const http1 = this.#http1Wanted > 0;
      if (http1) this.#http1Wanted--;
      const waiter: ConnectWaiter<Opened> = {
        onConnection: (opened) => this.#opened(opened),
        onConnectFailure: (code, message, times) => this.#failed(code, message, times),
      };
      this.#opener.connectHttp2(waiter, http1);
    }
  }

  /** A connection could not be opened. If no other one is being opened, all waiting requests fail. */
  #failed(code: ErrorCode, message: string, times: ConnectTimes | undefined): void {
    this.#coming--;
    if (this.#coming > 0) return;
    this.#waiting.failAll(code, message, times);
  }

  #opened(opened: Opened): void {
    if ("room" in opened) {
      this.#sessions.push(opened);
      if (this.#guessed(opened)) this.#limitGuess(opened);
      this.onRoom();
      if (opened.streams === 0) this.onIdle(opened);
      return;
    }
    // The server has selected HTTP/1.1, which needs a connection for each request.
    this.#coming--;
    this.#perConnection = 1;
    if (!this.hand(opened)) this.#opener.release(opened);
    this.grow();
  }
}
