/**
 * Trace files are JSON Lines: a header, then the events of the stream, unchanged. The stream itself, without a header, can be read too.
 */
import { packageVersion } from "../base/build-info.ts";
import { type Fields, fieldsOf, isObject } from "../base/fields.ts";
import { REDACTED } from "../base/redaction.ts";

/** The format that this version writes, and the only one that it reads: it might show a later one wrongly. */
export const TRACE_FILE_FORMAT = 1;

/** The first line of a trace file. */
export interface TraceFileHeader {
  /** The format of the file; no event has a field of this name. */
  readonly traceFile: number;
  /** The version of tracegate that wrote the file. */
  readonly tracegate: string;
  /** How many events follow: a file with fewer was cut short. */
  readonly events: number;
  /** The trace was recorded with `--reveal`, so the file contains secrets. */
  readonly revealed: boolean;
  readonly redacted: Redactions;
}

/** Where values are redacted, by name. */
interface Redactions {
  /** Header fields, in lower case. */
  readonly headers: readonly string[];
  /** Parameters of URLs. */
  readonly parameters: readonly string[];
  /** Other fields of events, such as `jwt.email` or `values.value`. */
  readonly fields: readonly string[];
}

/** The text of a trace file. `revealed`: the trace was recorded with `--reveal`. */
export function traceFileText(events: readonly Fields[], revealed: boolean): string {
  const header: TraceFileHeader = {
    traceFile: TRACE_FILE_FORMAT,
    tracegate: packageVersion(),
    events: events.length,
    revealed,
    redacted: redactionsIn(events),
  };
  return [header, ...events].map((line) => `${JSON.stringify(line)}\n`).join("");
}

/** The header in a line; undefined for any other line. Fields may be missing or wrong if another program wrote it. */
export function headerOf(line: Fields): TraceFileHeader | undefined {
  const { traceFile, tracegate, events, revealed, redacted } = line;
  if (typeof traceFile !== "number") return undefined;
  const { headers, parameters, fields } = fieldsOf(redacted);
  return {
    traceFile,
    tracegate: String(tracegate ?? ""),
    events: typeof events === "number" ? events : 0,
    revealed: revealed === true,
    redacted: { headers: texts(headers), parameters: texts(parameters), fields: texts(fields) },
  };
}

/** `saved by tracegate 0.9.0; redacted: headers authorization, cookie; parameter token`. */
export function headerText({ tracegate, revealed, redacted }: TraceFileHeader): string {
  const secrets = revealed ? "recorded with --reveal: may contain secrets; " : "";
  return `saved by tracegate ${tracegate}; ${secrets}redacted: ${redactionsText(redacted)}`;
}

/** `headers authorization, cookie; parameter token`, or `nothing`. */
function redactionsText({ headers, parameters, fields }: Redactions): string {
  const parts = [named("header", headers), named("parameter", parameters), named("field", fields)];
  return parts.filter((part) => part !== "").join("; ") || "nothing";
}

/** What is redacted in events, as such a text. */
export function redactedIn(events: readonly Fields[]): string {
  return redactionsText(redactionsIn(events));
}

function named(what: string, names: readonly string[]): string {
  return names.length === 0 ? "" : `${what}${names.length === 1 ? "" : "s"} ${names.join(", ")}`;
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

/** A parameter of a URL whose value is redacted. */
const PARAMETER = /[?&#;]([^=&#;?\s"'<>]{1,200})=<redacted>/g;

/** What is redacted in the events of a trace. */
function redactionsIn(events: readonly Fields[]): Redactions {
  const headers = new Set<string>();
  const parameters = new Set<string>();
  const fields = new Set<string>();
  const visit = (value: unknown, path: readonly string[]): void => {
    if (typeof value === "string") {
      if (!value.includes(REDACTED)) return;
      for (const [, name = ""] of value.matchAll(PARAMETER)) parameters.add(name);
      if (value.replaceAll(PARAMETER, "").includes(REDACTED)) {
        if (path.at(-2) === "headers") headers.add(path.at(-1) ?? "");
        else fields.add(path.join("."));
      }
    } else if (Array.isArray(value)) for (const each of value) visit(each, path);
    else if (isObject(value)) for (const [name, each] of Object.entries(value)) visit(each, [...path, name]);
  };
  for (const { message, ...event } of events) {
    visit(event, []);
    const { requestState, ...others } = fieldsOf(message);
    visit(others, []);
    visit(requestState, []);
  }
  return { headers: [...headers].sort(), parameters: [...parameters].sort(), fields: [...fields].sort() };
}
