/**
 * All pages but the overview come as a second file: half of the code is enough to say whether the gateway is well. It is fetched as soon as the
 * overview has its answer, so it is there before somebody follows a link, also if the gateway has been upgraded until then.
 */
import { signal } from "@preact/signals";
import type { VNode } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { type AskError, askCode } from "../ask.ts";
import type { Page, PageProps } from "../page.ts";
import { Problem } from "../parts/problem.tsx";
import { repeat } from "../poll.ts";

type Others = typeof import("./others.ts");

/** Milliseconds before the file is asked for again. */
const PAUSE = 1000;

const others = signal<Others | undefined>(undefined);
const problem = signal<AskError | undefined>(undefined);
let isFetched = false;

/** Fetches the other pages, once. Problems are shown where one of them is. */
export function fetchOthers(): void {
  if (isFetched) return;
  isFetched = true;
  void repeat(
    PAUSE,
    async () => {
      others.value = await askCode(() => import("./others.ts"));
      return "last";
    },
    (error) => {
      problem.value = error;
    },
    new AbortController().signal,
  );
}

/** One of the other pages, which shows nothing until it is there. */
export function later(which: (pages: Others) => Page["show"]): Page["show"] {
  return function Later(props: PageProps): VNode {
    // Before the frame is drawn: the file need not wait for it.
    useLayoutEffect(fetchOthers, []);
    if (others.value === undefined) return <Problem problem={problem.value} />;
    const Shown = which(others.value);
    return <Shown {...props} />;
  };
}
