import { setTimeout as delay } from "node:timers/promises";

/** How long a test waits for something that must happen; far longer than a slow machine needs. */
const PATIENCE_MS = 60_000;

/** Waits until `value` returns something other than undefined or false. Rejects after a bounded time. */
export async function until<T>(
  value: () => T | Promise<T>,
  what = "the condition",
): Promise<Exclude<T, undefined | false>> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = await value();
    if (found !== undefined && found !== false) return found as Exclude<T, undefined | false>;
    if (performance.now() > deadline) throw new Error(`waited too long for ${what}`);
    await delay(5);
  }
}

/** As `until`, but waits for turns of the event loop instead of a timer, for tests whose timers are mocked. */
export async function untilTurn(condition: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`waited too long for ${what}`);
    await new Promise(setImmediate);
  }
}
