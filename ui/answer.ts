import { useSignal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import type { AdminAnswers } from "../src/admin/plane/answers.ts";
import { type AskError, ask, type Question } from "./ask.ts";
import { repeat } from "./poll.ts";

/** Milliseconds until a question is asked again whose problem may pass. */
const PAUSE = 1000;

/** Until the gateway has answered, the answer to the question before. */
interface Answered<T> {
  readonly answer: T | undefined;
  /** Why there is no answer. */
  readonly problem: AskError | undefined;
}

/**
 * Asks while the component is there until there is an answer or a problem that does not pass, and afresh when `key` changes: it stands for the
 * question. For what changes, see `usePoll`.
 */
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
  // Before the frame is drawn: the question need not wait for it.
  useLayoutEffect(() => {
    const stop = new AbortController();
    const turn = async (signal: AbortSignal): Promise<"last"> => {
      const answer = await get(signal);
      if (!signal.aborted) state.value = { answer, problem: undefined };
      return "last";
    };
    const failed = (problem: AskError | undefined): void => {
      if (problem !== undefined) state.value = { answer: undefined, problem };
    };
    void repeat(PAUSE, turn, failed, stop.signal);
    return () => stop.abort();
  }, [key]);
  return state.value;
}

const NONE = { answer: undefined, problem: undefined };
