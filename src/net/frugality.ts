/**
 * When a thread has to be sparing with memory for bytes that wait for slow peers. A client that does not read its response leaves what
 * was read of it last in the gateway: with reads of 64 KiB, thousands of such clients take more memory than a container may have,
 * and turning new work away does not help, because they have been let in before. So only the first ones may leave that
 * much. From then on everything is read in small pieces, and queues are short.
 */

/** Bytes that a read brings, and that a queue holds before its source is paused, while the thread is frugal. */
export const FRUGAL_BYTES = 8 * 1024;
/** Sources that may wait with what a large read brings: 16 MiB. */
const MAX_WAITING = 256;
/** Bytes that streams of HTTP/2 may hold together: their windows let much more come than a read. */
const MAX_HELD = 32 * 1024 * 1024;

let waiting = 0;
let held = 0;
let short = false;

/** Whether this thread is frugal now. */
export let frugal = false;

function decide(): void {
  frugal = short || waiting > MAX_WAITING || held > MAX_HELD;
}

/** One more source is paused, because what it brings is not taken. */
export function beginsToWait(): void {
  waiting++;
  decide();
}

/** It is read again, or gone. */
export function waitsNoMore(): void {
  waiting--;
  decide();
}

/** So many bytes more, or less, have come on streams of HTTP/2 and were not taken yet. */
export function holdsMore(bytes: number): void {
  held += bytes;
  decide();
}

/** Memory is short, however many wait. */
export function setMemoryShort(isShort: boolean): void {
  short = isShort;
  decide();
}
