import { useLayoutEffect } from "preact/hooks";
import { AskError } from "./ask.ts";

/** Milliseconds: the longest pause after a question that failed. */
const LONGEST_PAUSE = 8000;

/**
 * Asks again and again while the component is there and the page is visible, and afresh when `key` changes. Each question begins
 * `pause` milliseconds after the one before it has been answered. `problem` is told why there is no answer, and undefined once there is one; it ends
 * with an error that does not pass.
 */
export function usePoll(key: string, pause: number, turn: Turn, problem: (error: AskError | undefined) => void): void {
  // Before the frame is drawn: the question need not wait for it.
  useLayoutEffect(() => {
    const stop = new AbortController();
    void repeat(pause, turn, problem, stop.signal);
    return () => stop.abort();
  }, [key]);
}

/** One question. It resolves with `last` if no other follows. */
type Turn = (signal: AbortSignal) => Promise<"last" | undefined>;

/** As `usePoll`, until a turn says that it was the last or `signal` aborts. */
export async function repeat(
  usual: number,
  turn: Turn,
  problem: (error: AskError | undefined) => void,
  signal: AbortSignal,
): Promise<void> {
  let pause = usual;
  while (!signal.aborted) {
    try {
      const which = await turn(signal);
      problem(undefined);
      if (which === "last") return;
      pause = usual;
    } catch (error) {
      if (signal.aborted) return;
      const asked = error instanceof AskError ? error : new AskError(String(error), false);
      problem(asked);
      if (!asked.passes) return;
      pause = Math.max(usual, Math.min(2 * pause, LONGEST_PAUSE));
    }
    await sleep(pause, signal);
    await visible(signal);
  }
}

function sleep(time: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, time);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Resolves at once if somebody can see the page. */
function visible(signal: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    document.addEventListener("visibilitychange", () => resolve(), { once: true, signal });
    signal.addEventListener("abort", () => resolve());
  });
}
