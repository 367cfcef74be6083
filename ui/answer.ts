import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { AdminAnswers } from "../src/admin/plane/answers.ts";
import { AskError, ask, type Question } from "./ask.ts";

/** Until the gateway has answered, the answer to the question before. */
interface Answered<T> {
  readonly answer: T | undefined;
  /** Why there is none. */
  readonly problem: AskError | undefined;
}

/** Asks once while the component is there, and afresh when `key` changes: it stands for the question. For what changes, see `usePoll`. */
export function useAnswer<Endpoint extends keyof AdminAnswers>(
  endpoint: Endpoint,
  question: Question,
  key: string,
): Answered<AdminAnswers[Endpoint]> {
  return useOnce(`${endpoint} ${key}`, (signal) => ask(endpoint, { ...question, signal }));
}

/** Gets something once while the component is there, and afresh when `key` changes. */
export function useOnce<T>(key: string, get: (signal: AbortSignal) => Promise<T>): Answered<T> {
  const state = useSignal<Answered<T>>(NONE);
  useEffect(() => {
    const stop = new AbortController();
    get(stop.signal).then(
      (answer) => {
        if (!stop.signal.aborted) state.value = { answer, problem: undefined };
      },
      (error: unknown) => {
        if (stop.signal.aborted) return;
        const about = error instanceof AskError ? error.about : undefined;
        // Nothing asks again by itself.
        const problem = new AskError(error instanceof Error ? error.message : String(error), false, about);
        state.value = { answer: undefined, problem };
      },
    );
    return () => stop.abort();
  }, [key]);
  return state.value;
}

const NONE = { answer: undefined, problem: undefined };
