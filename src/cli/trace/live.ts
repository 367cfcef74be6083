import { CliError } from "../errors.ts";
import { type InjectedRequest, sendRequest } from "./inject.ts";
import type { TraceItem, TraceRecord } from "./records.ts";

/**
 * The items of a trace that is open already. With a request, that one is sent first, so its trace cannot be missed; a
 * request that failed becomes a problem item while events still come, and the error of the whole at the end. A request
 * that never reached the proxy ends the wait, because nothing would ever come.
 */
export async function* liveItems(
  records: AsyncGenerator<TraceRecord>,
  request: InjectedRequest | undefined,
  signal: AbortSignal,
): AsyncGenerator<TraceItem> {
  if (request === undefined) {
    yield* records;
    return;
  }
  let failure: CliError | undefined;
  const sent = sendRequest(request, signal).catch((error: unknown) => {
    failure = CliError.from(error);
  });
  yield { kind: "progress", text: "request sent, waiting for trace to complete" };

  let next = records.next();
  let any = false;
  let told = false;
  const answered = sent.then(() => "answered" as const);
  while (true) {
    // Races only until the outcome of the request is known.
    const result = told ? await next : await Promise.race([next, answered]);
    if (result === "answered") {
      told = true;
      if (failure === undefined) continue;
      if (!any && (await firstWithin(next, GRACE)) === undefined) throw failure;
      yield { kind: "problem", text: failure.message };
      continue;
    }
    if (result.done) break;
    any = true;
    yield result.value;
    next = records.next();
  }
  await sent;
  if (failure !== undefined) throw failure;
}

/** Milliseconds that events may still be on their way after the request has failed. */
const GRACE = 500;

/** The value of a promise, or `undefined` when it takes longer. */
async function firstWithin<T>(promise: Promise<T>, milliseconds: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), milliseconds);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
