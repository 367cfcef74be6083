import { CliError } from "../errors.ts";
import { type InjectedRequest, sendRequest } from "./inject.ts";
import type { TraceItem, TraceRecord } from "./records.ts";

/**
 * The items of a trace that is open already. With a request, that one is sent first, so its trace cannot be missed; a
 * request that failed becomes a problem item while events still come, and the error of the whole at the end. When curl has
 * ended and no event comes, the wait ends with what curl got: nothing would ever come.
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
  let status = "";
  const sent = sendRequest(request, signal).then(
    (answered) => {
      status = answered;
    },
    (error: unknown) => {
      failure = CliError.from(error);
    },
  );
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
      if (!any && (await firstWithin(next, failure === undefined ? GRACE.answered : GRACE.failed)) === undefined)
        throw failure ?? untraced(status);
      if (failure !== undefined) yield { kind: "problem", text: failure.message };
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

/** Milliseconds that events may still be on their way after curl has ended. */
const GRACE = { answered: 2000, failed: 500 };

/** The request was answered, by the proxy or by something else on that port, and the proxy reports nothing about it. */
function untraced(status: string): CliError {
  const answer = /^\d{3}$/.test(status) ? ` with status ${status}` : "";
  return new CliError("failure", `the request was answered${answer}, but no trace event came`, {
    why: "it reached something other than this proxy, or was refused before its headers were read",
    hint: "check that --port is a listener of the same proxy as the admin server, and that the request line is not too long",
  });
}

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
