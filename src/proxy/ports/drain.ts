/**
 * The shutdown of all ports without losing a request. Closing a listening socket resets the connections that the system has
 * queued on it, so it closes only while none arrives. Clients that know of no other replica reconnect as soon as they have a
 * response, so for a moment new connections are accepted and not read: each such client then waits for its response instead of
 * connecting again. All workers take a step before any of them takes the next, because the system spreads connections over
 * the listening sockets of all.
 *
 * - announce: responses say `Connection: close`; connections are accepted and served for a moment more
 * - hold: connections are accepted and not read
 * - close: the listening sockets close
 * - finish: connections that were held are served, idle ones close last
 */
import { setTimeout as delay, setImmediate as nextPoll } from "node:timers/promises";

export const DRAIN_STEPS = ["announce", "hold", "close", "finish"] as const;
export type DrainStep = (typeof DRAIN_STEPS)[number];

/** A port that can be drained; the steps determine the order of the calls. */
export interface DrainablePort {
  /** Connections accepted so far. */
  readonly accepted: number;
  /** From now on, every response asks its client to close the connection. */
  announceDrain(): void;
  /** New connections are accepted and wait for `serveHeld`. */
  holdConnections(): void;
  stopListening(): void;
  serveHeld(): void;
  /** Closes connections without a stream, now and whenever one becomes idle. */
  closeIdle(): void;
}

/** Without a new connection for this long, clients are assumed to use other replicas. */
const QUIET_MS = 100;
/** How long connections are accepted and served if new ones keep arriving. */
const ACCEPT_MS = 1000;
/** The same two limits while connections are held. */
const HELD_QUIET_MS = 50;
const HELD_MS = 500;
/** Clients get this long to use or close a connection that has no request. */
const IDLE_MS = 300;

/** Takes a step in one worker; resolves when it is done. `deadlineMs` is the time for the whole drain. */
export async function takeDrainStep(
  step: DrainStep,
  ports: readonly DrainablePort[],
  deadlineMs: number,
): Promise<void> {
  switch (step) {
    case "announce":
      for (const port of ports) port.announceDrain();
      return quiet(ports, QUIET_MS, Math.min(ACCEPT_MS, deadlineMs / 4));
    case "hold":
      for (const port of ports) port.holdConnections();
      return quiet(ports, HELD_QUIET_MS, Math.min(HELD_MS, deadlineMs / 8));
    case "close":
      await emptyQueue(ports, Math.min(HELD_QUIET_MS, deadlineMs / 8));
      for (const port of ports) port.stopListening();
      return;
    case "finish":
      for (const port of ports) port.serveHeld();
      await delay(Math.min(IDLE_MS, deadlineMs / 8));
      // What clients have sent up to now is read first.
      await nextPoll();
      for (const port of ports) port.closeIdle();
  }
}

/** Waits until no connection has arrived for `quietMs`, at most `atMostMs` in total. */
async function quiet(ports: readonly DrainablePort[], quietMs: number, atMostMs: number): Promise<void> {
  const end = performance.now() + atMostMs;
  let before: number;
  do {
    before = acceptedBy(ports);
    await delay(Math.min(quietMs, atMostMs));
  } while (acceptedBy(ports) !== before && performance.now() < end);
}

/** Resolves right after the event loop has found no connection waiting to be accepted, within `atMostMs`. */
async function emptyQueue(ports: readonly DrainablePort[], atMostMs: number): Promise<void> {
  const end = performance.now() + atMostMs;
  let before: number;
  do {
    before = acceptedBy(ports);
    await nextPoll();
  } while (acceptedBy(ports) !== before && performance.now() < end);
}

function acceptedBy(ports: readonly DrainablePort[]): number {
  return ports.reduce((sum, port) => sum + port.accepted, 0);
}
