/**
 * Decides when a thread has to save memory on bytes that wait for slow peers. For a client that does not read its response, the
 * gateway holds the last piece that it read for it: with reads of 64 KiB, thousands of such clients take more memory than a
 * container may have. Turning new work away does not help, because those clients are connected already. So only the first ones may
 * take that much. Beyond them, everything is read in small pieces, and queues are short.
 */

/** Limit of a read, and of a queue before its source is paused, while the thread is frugal. Bytes. */
export const FRUGAL_BYTES = 8 * 1024;
/** Paused sources that may hold a large read: 16 MiB in total. */
const MAX_WAITING = 256;
/** Bytes that streams of HTTP/2 may hold together: their windows are much larger than a read. */
const MAX_HELD = 32 * 1024 * 1024;

let waiting = 0;
let held = 0;
let short = false;

/** Whether this thread is frugal now. */
export let frugal = false;

function decide(): void {
  frugal = short || waiting > MAX_WAITING || held > MAX_HELD;
}

/** Another source is paused, because its reader does not take its bytes. */
export function beginsToWait(): void {
  waiting++;
  decide();
}

/** A paused source is read again, or gone. */
export function waitsNoMore(): void {
  waiting--;
  decide();
}

/** Streams of HTTP/2 hold `bytes` more, or less if negative, that have not been taken. */
export function holdsMore(bytes: number): void {
  held += bytes;
  decide();
}

/** Sets whether memory is short, however many sources wait. */
export function setMemoryShort(isShort: boolean): void {
  short = isShort;
  decide();
}
