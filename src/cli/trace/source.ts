import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { TraceTextParser } from "../../admin/client/sse.ts";
import { isObject } from "../../base/fields.ts";
import { CliError, describe } from "../runner/errors.ts";

/** One trace event: its JSON on one line, and parsed. Its type may be one of a later version. */
export interface TraceRecord {
  readonly kind: "event";
  readonly raw: string;
  readonly event: Readonly<Record<string, unknown>>;
}

/** An item of a trace: an event, progress of the client, a problem, or which replica the trace turned out to be from. */
export type TraceItem =
  | TraceRecord
  | { readonly kind: "progress"; readonly text: string }
  | { readonly kind: "problem"; readonly text: string }
  | { readonly kind: "source"; readonly text: string };

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
  if (!isObject(event)) throw undecodable(raw, "not a JSON object");
  return { kind: "event", raw, event };
}

function undecodable(raw: string, why: string): CliError {
  const shown = raw.length > 80 ? `${raw.slice(0, 80)}…` : raw;
  return new CliError("failure", `failed to decode trace event: ${why}`, { why: `the event reads ${shown}` });
}

/** The items of one trace, for a view or a printer. */
export interface TraceSource {
  /** Shown in the title until an item of kind `source`: `http://localhost:15000`, `gateway/web`, a file name. */
  readonly title: string;
  /** Ends when the stream does; throws when it breaks. */
  readonly items: AsyncIterable<TraceItem>;
}

/** The part of the process that the view uses. */
interface ViewProcess {
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
 * The items of a trace of the proxy `name`, which `open` opens. A request, if given, is sent only now, so its trace cannot be missed; `send` resolves with
 * its status. If it fails, its error is a problem item while events still arrive, and rejects at the end. If it ends and no
 * event arrives, the wait ends with an error: the request reached another program.
 */
export async function* liveItems(
  name: string,
  open: () => Promise<AsyncGenerator<TraceRecord>>,
  send: (() => Promise<string>) | undefined,
): AsyncGenerator<TraceItem> {
  yield { kind: "progress", text: `connecting to ${name}` };
  const records = await open();
  if (send === undefined) {
    yield { kind: "progress", text: `waiting for a request at ${name}` };
    yield* records;
    return;
  }
  let failure: CliError | undefined;
  let status = "";
  const sent = send().then(
    (received) => {
      status = received;
    },
    (error: unknown) => {
      failure = CliError.from(error);
    },
  );
  yield { kind: "progress", text: "request sent, waiting for trace to complete" };

  let next = records.next();
  let any = false;
  let sendKnown = false;
  const settled = sent.then(() => "settled" as const);
  while (true) {
    // Races only until the outcome of the request is known.
    const result = sendKnown ? await next : await Promise.race([next, settled]);
    if (result === "settled") {
      sendKnown = true;
      if (!any && (await firstWithin(next, failure === undefined ? GRACE_MS.answered : GRACE_MS.failed)) === undefined)
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

/** How long events may still arrive after curl has ended, in milliseconds. */
const GRACE_MS = { answered: 2000, failed: 500 };

/** There was a response, from the proxy or another program on that port, but no trace. */
function untraced(status: string): CliError {
  const withStatus = /^\d{3}$/.test(status) ? ` with status ${status}` : "";
  return new CliError("failure", `the request got a response${withStatus}, but no trace event arrived`, {
    why: "it reached something other than this proxy, or was rejected before its headers were read",
    hint: "check that --port is a listener of the same proxy as the admin server, and that the request line is not too long",
  });
}

/** The value of a promise, or `undefined` after the time. */
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
