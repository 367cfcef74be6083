import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { type TraceText, TraceTextParser } from "../../admin/client/sse.ts";
import { type Fields, fieldsOf, isObject } from "../../base/fields.ts";
import { fileProblem } from "../../base/file-problem.ts";
import { headerOf, headerText, TRACE_FILE_FORMAT, type TraceFileHeader } from "../../report/trace-file.ts";
import { CliError, describe } from "../runner/errors.ts";

/** One trace event: its JSON on one line, and parsed. Its type may be one of a later version. */
export interface TraceRecord {
  readonly kind: "event";
  readonly raw: string;
  readonly event: Readonly<Record<string, unknown>>;
}

/** An item of a trace: an event, the header of a file, progress of the client, a problem, or which replica the trace turned out to be from. */
export type TraceItem =
  | TraceRecord
  | { readonly kind: "header"; readonly text: string; readonly header: TraceFileHeader }
  | { readonly kind: "progress"; readonly text: string }
  | { readonly kind: "problem"; readonly text: string }
  | { readonly kind: "source"; readonly text: string };

/** Parses one event's JSON text, which may span lines and comes from `where`. Throws a `CliError` that names both. */
export function toRecord(text: string, where = "the event"): TraceRecord {
  // A line break in JSON is only ever white space, so the event can be put on one line without parsing it.
  const raw = text.replace(/\s*[\r\n]+\s*/g, " ").trim();
  let event: unknown;
  try {
    event = JSON.parse(raw);
  } catch (error) {
    throw undecodable(raw, where, describe(error));
  }
  if (!isObject(event)) throw undecodable(raw, where, "not a JSON object");
  return { kind: "event", raw, event };
}

function undecodable(raw: string, where: string, why: string): CliError {
  const shown = raw.length > 80 ? `${raw.slice(0, 80)}…` : raw;
  return new CliError("failure", `failed to decode trace event: ${why}`, { why: `${where} reads ${shown}` });
}

/** The items of one trace, for a view or a printer. */
export interface TraceSource {
  /** Shown in the title until an item of kind `source`: `http://localhost:15000`, `gateway/web`, a file name. */
  readonly title: string;
  /** The trace was opened with `--reveal`; for a file, its header says so. */
  readonly revealed?: boolean;
  /** Ends when the stream does; throws when it breaks. */
  readonly items: AsyncIterable<TraceItem>;
}

/** Largest file, in characters; showing or converting it takes several times as much memory. */
const MAX_FILE_LENGTH = 128 * 1024 * 1024;

/** The trace in a file; `-` is `stdin`. */
export function sourceOfFile(path: string, stdin: Readable): TraceSource {
  const title = path === "-" ? "standard input" : path;
  return { title, items: recordsOfFile(path, title, stdin) };
}

/** A whole trace file. */
export interface SavedTrace {
  /** The name of the file, for messages and titles. */
  readonly name: string;
  readonly events: readonly Fields[];
}

/** Reads the trace in a file; `-` is `stdin`. Throws a `CliError` when it holds anything but one whole trace. */
export async function readTrace(path: string, stdin: Readable): Promise<SavedTrace> {
  const { title, items } = sourceOfFile(path, stdin);
  const events: Fields[] = [];
  for await (const item of items) {
    if (item.kind !== "event") continue;
    if (events.length > 0 && fieldsOf(item.event.message).type === "requestStarted") {
      throw new CliError("failure", `${title} holds the traces of several requests`, {
        why: `the second begins with event ${events.length + 1}`,
        hint: "put each trace into a file of its own",
      });
    }
    events.push(item.event);
  }
  return { name: title, events };
}

/**
 * The header and the events of a trace file as they are read: a file that `--save` wrote, the output of `--raw`, or the text of the event
 * stream. Throws a `CliError` when the file cannot be read, has another format, is cut short or holds no event, but yields the events
 * before that.
 */
async function* recordsOfFile(path: string, name: string, stdin: Readable): AsyncGenerator<TraceItem> {
  let header: TraceFileHeader | undefined;
  let events = 0;
  for await (const { raw, line, last } of eventTexts(path === "-" ? stdin : createReadStream(path), name)) {
    const record = recordAt(raw, line, name, last);
    if (events === 0 && header === undefined) {
      header = headerOf(record.event);
      if (header !== undefined && header.traceFile !== TRACE_FILE_FORMAT) throw otherFormat(header, name);
      if (header !== undefined) {
        yield { kind: "header", text: headerText(header), header };
        continue;
      }
    }
    events++;
    yield record;
  }
  if (events < (header?.events ?? 0)) throw cutShort(name, `it has ${events} of ${header?.events} events`);
  if (events > 0) return;
  throw new CliError("failure", `no trace event found in ${name}`, {
    hint: "pass a file that `tgctl proxy trace --save` wrote, or the output of `tgctl proxy trace --raw`",
  });
}

function recordAt(raw: string, line: number, name: string, last: boolean): TraceRecord {
  try {
    return toRecord(raw, `line ${line} of ${name}`);
  } catch (error) {
    throw last ? cutShort(name, `line ${line} ends in the middle of an event`) : error;
  }
}

function cutShort(name: string, why: string): CliError {
  return new CliError("failure", `the trace in ${name} is cut short`, {
    why,
    hint: "copy or save it again; `tgctl proxy trace open` shows the events before that",
  });
}

function otherFormat({ traceFile, tracegate }: TraceFileHeader, name: string): CliError {
  return new CliError(
    "failure",
    `${name} is a trace file of format ${traceFile}; this tgctl reads format ${TRACE_FILE_FORMAT}`,
    {
      hint: `open it with tgctl ${tracegate}, which wrote it, or a later version`,
    },
  );
}

/** `last`: the text does not end with a line break. */
async function* eventTexts(input: Readable, name: string): AsyncGenerator<TraceText & { readonly last: boolean }> {
  const parser = new TraceTextParser();
  let length = 0;
  try {
    for await (const chunk of input.setEncoding("utf8")) {
      const text = String(chunk);
      length += text.length;
      if (length > MAX_FILE_LENGTH) throw new Error("it is larger than 128 MiB; a trace has only one request");
      for (const event of parser.push(text)) yield { ...event, last: false };
    }
    for (const event of parser.end()) yield { ...event, last: true };
  } catch (error) {
    throw new CliError("failure", `failed to read trace file ${name}: ${fileProblem(error)}`, { cause: error });
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
