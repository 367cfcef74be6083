/** What differs between two traces, step by step: from the first difference to the end. */
import { createHash } from "node:crypto";
import { type Fields, fieldsOf } from "../base/fields.ts";
import type { TraceEvent } from "../trace/events.ts";
import { stepsOf } from "../trace/steps.ts";
import { readBody } from "./bodies.ts";
import { decompress } from "./decompress.ts";
import { type DiffLine, diffLines } from "./diff.ts";
import { type Row, rowsOf } from "./rows.ts";
import { stepLines } from "./step-lines.ts";
import { textOf } from "./summaries.ts";
import { harmless } from "./text.ts";

/** The lines, and the characters in base64, up to which a body is compared line by line; for a longer one the digest is compared too. */
const MAX_BODY_LINES = 200;
const MAX_BODY = 64 * 1024;
/** Hexadecimal digits of a digest: fewer than an id has, because ids are ignored. */
const DIGEST = 12;

export interface TraceDifference {
  /** Equal lines before the difference that `lines` leaves out. */
  readonly omitted: number;
  /**
   * The steps that contain the first difference, then every line from there to the end. Equal lines have the text of the first trace.
   * Empty if there is no difference.
   */
  readonly lines: readonly DiffLine[];
}

/**
 * Compares what two traces show: the request as received, each step of the tree, and bodies. Unless `exact`, times, ids and ports are
 * ignored.
 * @throws TypeError if events come from another version, whose steps are not known
 */
export function traceDifference(before: readonly Fields[], after: readonly Fields[], exact: boolean): TraceDifference {
  const [old, now] = [linesOf(before), linesOf(after)];
  const [oldKeys, nowKeys] = exact ? [old, now] : [old.map(lasting), now.map(lasting)];
  let equal = 0;
  while (equal < old.length && oldKeys[equal] === nowKeys[equal]) equal++;
  if (equal === old.length && equal === now.length) return { omitted: equal, lines: [] };
  let i = equal;
  let j = equal;
  const lines = diffLines(oldKeys.slice(equal), nowKeys.slice(equal)).map(({ sign, text }): DiffLine => {
    const own = sign === "+" ? now[j] : old[i];
    if (sign !== "+") i++;
    if (sign !== "-") j++;
    return { sign, text: own ?? text };
  });
  const context = above(old, equal, indentOf(lines[0]?.text ?? ""));
  return { omitted: equal - context.length, lines: [...context, ...lines] };
}

/** The ancestors of the line at `index`; the previous step for a line at the outermost level. */
function above(lines: readonly string[], index: number, indent: number): DiffLine[] {
  const found: DiffLine[] = [];
  for (let i = index - 1, depth = Math.max(indent, 1); i >= 0 && depth > 0; i--) {
    const text = lines[i] ?? "";
    if (indentOf(text) >= depth) continue;
    depth = indentOf(text);
    found.unshift({ sign: " ", text });
  }
  return found;
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

function linesOf(events: readonly Fields[]): string[] {
  const rows = rowsOf(events);
  const steps = stepsOf(events as unknown as readonly TraceEvent[]);
  return [...received(rows), ...stepLines(steps), ...rows.flatMap(body)].map(harmless);
}

function received(rows: readonly Row[]): string[] {
  const first = rows.find(({ message }) => message.type === "requestSnapshot")?.message.requestState;
  const { request, source } = fieldsOf(first);
  const { method, uri, version, headers } = fieldsOf(request);
  const fields = Object.entries(fieldsOf(headers)).map(([name, value]) => `    ${name}: ${textOf(value)}`);
  const line = ["received", method, uri, version].map(textOf).filter(Boolean).join(" ");
  return [line, ...fields, `    from ${textOf(fieldsOf(source).address)}`];
}

function body({ message, encodings }: Row): string[] {
  if (message.type !== "bodySnapshot") return [];
  const isResponse = message.stage === "response";
  const base64 = textOf(message.body);
  const { note, text } = readBody(
    base64,
    isResponse ? encodings.response : encodings.request,
    message.truncated === true,
    decompress,
  );
  const lines = text?.split("\n") ?? [];
  const isWhole = text !== undefined && lines.length <= MAX_BODY_LINES && base64.length <= MAX_BODY;
  const digest = createHash("sha256").update(base64).digest("hex").slice(0, DIGEST);
  return [
    `body of the ${isResponse ? "response" : "request"}: ${note}`,
    ...lines.slice(0, MAX_BODY_LINES).map((line) => `    ${line}`),
    ...(isWhole ? [] : [`    all of it: SHA-256 ${digest}…`]),
  ];
}

/** Header fields whose values differ from one request to the next. */
const VARYING = /^(\s+(?:age|date|expires|server-timing|traceparent|tracestate|x-request-id|x-b3-\w+)): .*$/;
const DATE =
  /\b\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\b|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?/g;
const DURATION = /\b\d+(?:\.\d+)? ?(?:ns|µs|ms|s|m|min|h)\b/g;
/** UUIDs, and at least 16 hexadecimal digits. */
const ID = /\b[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b|\b(?=[\da-f]*\d)[\da-f]{16,}\b/gi;
/** The port of an address, URL or endpoint, or of a listener in the key of a route. */
const PORT =
  /((?:\d{1,3}\.){3}\d{1,3}|\]|\blocalhost|\/\/[\w.-]+|^ *. endpoint \S+|^ +host: \S+):\d{1,5}\b|(\bbind\/)\d{1,5}\b/g;

/** The line without what differs between any two requests. */
function lasting(line: string): string {
  return line
    .replace(VARYING, "$1: …")
    .replaceAll(DATE, "<time>")
    .replaceAll(DURATION, "<time>")
    .replaceAll(ID, "<id>")
    .replaceAll(PORT, "$1$2:<port>");
}
