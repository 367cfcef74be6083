import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { TraceTextParser } from "../../admin/sse.ts";
import { CliError, describe } from "../errors.ts";
import { type InjectedRequest, sendRequest } from "./inject.ts";

/** One trace event: its JSON on one line, and parsed. Later versions may send types this one does not know. */
export interface TraceRecord {
  readonly kind: "event";
  readonly raw: string;
  readonly event: Readonly<Record<string, unknown>>;
}

/** What a trace source yields: events, and what else happened on the way. */
export type TraceItem =
  | TraceRecord
  | { readonly kind: "progress"; readonly text: string }
  | { readonly kind: "problem"; readonly text: string };

/** Parses one event's JSON text, which may span lines. Throws a `CliError` that names the text. */
export function toRecord(text: string): TraceRecord {
  // A line break in JSON is only ever white space, so the event can be put on one line without parsing it.
  const raw = text.replace(/\s*[\r\n]+\s*/g, " ").trim();
  let event: unknown;
  try {
    event = JSON.parse(raw);
  } catch (error) {
    throw undecodable(raw, describe(error));
  }
  if (typeof event !== "object" || event === null || Array.isArray(event)) throw undecodable(raw, "not a JSON object");
  return { kind: "event", raw, event: event as Readonly<Record<string, unknown>> };
}

function undecodable(raw: string, why: string): CliError {
  const shown = raw.length > 80 ? `${raw.slice(0, 80)}…` : raw;
  return new CliError("failure", `failed to decode trace event: ${why}`, { why: `the event reads ${shown}` });
}

/** Where a trace comes from, to whoever shows it. */
export interface TraceSource {
  /** Shown in the title: `localhost:15000`, a file name. */
  readonly title: string;
  /** Ends when the stream does; throws when it breaks. */
  readonly items: AsyncIterable<TraceItem>;
}

/** What the view needs to know of the process. */
export interface ViewProcess {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

/** The terminal UI, as the trace command sees it. Resolves when the reader quits; rejects when the trace failed before its first event. */
export interface TraceView {
  show(source: TraceSource, process: ViewProcess): Promise<void>;
}

/**
 * The events of a trace file, as they are read: JSON Lines or the text of the event stream. `-` reads `stdin`. Throws a
 * `CliError` when the file cannot be read, or holds no event.
 */
export async function* recordsOfFile(path: string, stdin: Readable): AsyncGenerator<TraceRecord> {
  const name = path === "-" ? "standard input" : path;
  let any = false;
  for await (const raw of eventTexts(path === "-" ? stdin : createReadStream(path), name)) {
    any = true;
    yield toRecord(raw);
  }
  if (any) return;
  throw new CliError("failure", `no trace event found in ${name}`, {
    hint: "pass what `tgctl proxy trace --raw` printed, or the text of the stream of POST /debug/trace",
  });
}

async function* eventTexts(input: Readable, name: string): AsyncGenerator<string> {
  const parser = new TraceTextParser();
  try {
    for await (const chunk of input.setEncoding("utf8")) yield* parser.push(String(chunk));
    yield* parser.end();
  } catch (error) {
    throw new CliError("failure", `failed to read trace file ${name}: ${describe(error)}`, { cause: error });
  }
}

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
