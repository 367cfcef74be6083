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

let waiting = 0;
let short = false;

/** Whether this thread is frugal now. */
export let frugal = false;

/** One more source is paused, because what it brings is not taken. */
export function beginsToWait(): void {
  waiting++;
  frugal = short || waiting > MAX_WAITING;
}

/** It is read again, or gone. */
export function waitsNoMore(): void {
  waiting--;
  frugal = short || waiting > MAX_WAITING;
}

/** Memory is short, however many wait. */
export function setMemoryShort(isShort: boolean): void {
  short = isShort;
  frugal = short || waiting > MAX_WAITING;
}
