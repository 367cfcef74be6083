import { type Fields, fieldsOf } from "../base/fields.ts";
import { bodyValue, type Decompress, encodingOf, readBody, withReadableHeaders } from "./bodies.ts";
import { diffLines } from "./diff.ts";
import { type CandidateLine, candidatesOf, evaluatedCount, selectedName } from "./fields.ts";
import type { Row } from "./rows.ts";
import { INDENT, plainLine, treeLines } from "./step-lines.ts";
import { columnsOf, duration, fit, harmless } from "./text.ts";

export type Mode = "raw" | "snapshot" | "diff" | "tree";

/** How a trace is read where it is shown. */
export interface Reading {
  /** A value as text with lines and indentation, such as YAML. */
  readonly write: (value: unknown) => string;
  readonly decompress: Decompress;
}

/** The content of the detail pane. */
export interface Detail {
  readonly title: string;
  readonly lines: readonly DetailLine[];
}

export interface DetailLine {
  readonly text: string;
  readonly sign?: "+" | "-";
  /** A remark of the client, not part of the data. */
  readonly note?: true;
  /** Columns by which its continuation is indented. Default: as in YAML and JSON. */
  readonly hang?: number;
}

/** The decisions about the request so far. */
export function treeOf(rows: readonly Row[]): Detail {
  const lines = treeLines(rows.map(({ event }) => event)).map((line) => ({
    text: plainLine(line),
    hang: INDENT * line.depth + SIGN,
  }));
  return { title: TITLES.tree, lines: lines.length === 0 ? [note("Nothing has been decided yet.")] : lines };
}

/** The details of a row; `undefined` while there is no row. */
export function detailOf(row: Row | undefined, mode: Exclude<Mode, "tree">, reading: Reading): Detail {
  if (row === undefined) return { title: TITLES[mode], lines: [note("No event available yet.")] };
  if (mode === "raw") return { title: join(TITLES.raw, timing(row)), lines: rawLines(row, reading) };
  const ownChange = mode === "diff" ? policyChange(row) : undefined;
  if (ownChange !== undefined) {
    const title = join("Policy diff", harmless(String(row.message.kind ?? "")));
    return { title, lines: changes(ownLines(ownChange.before, reading), ownLines(ownChange.after, reading)) };
  }
  const { snapshot } = row;
  if (snapshot === undefined) return { title: TITLES[mode], lines: [note("No snapshot available yet.")] };
  const title = join(TITLES[mode], snapshot.stage);
  const after = render(presentable(snapshot.state, reading), reading);
  if (mode === "snapshot") return { title, lines: after.map(plain) };
  if (snapshot.previous === undefined) return { title: join(title, "first"), lines: after.map(plain) };
  const before = render(presentable(snapshot.previous, reading), reading);
  return { title, lines: changes(before, after) };
}

/** What says the most about a row: what it changed, or the event itself if it is neither a snapshot nor a policy that says what it changed. */
export function tellingMode(row: Row): "diff" | "raw" {
  return row.message.requestState !== undefined || policyChange(row) !== undefined ? "diff" : "raw";
}

function changes(before: readonly string[], after: readonly string[]): DetailLine[] {
  const lines = diffLines(before, after);
  if (lines.every((line) => line.sign === " ")) return [note("no change")];
  const near = nearChanges(lines);
  return lines.flatMap(({ sign, text }, i): DetailLine[] => {
    if (sign !== " ") return [{ text: `${sign} ${text}`, sign }];
    if (near.has(i)) return [plain(`  ${text}`)];
    return i > 0 && !near.has(i - 1) && lines[i - 1]?.sign === " " ? [] : [note("  …")];
  });
}

/** Unchanged lines shown before and after a change. */
const CONTEXT = 1;

/** Indexes of the unchanged lines that a diff shows: those beside a change, and the keys that a change stands below. */
function nearChanges(lines: readonly { readonly sign: string; readonly text: string }[]): ReadonlySet<number> {
  const near = new Set<number>();
  for (const [i, { sign, text }] of lines.entries()) {
    if (sign === " ") continue;
    for (let j = i - CONTEXT; j <= i + CONTEXT; j++) near.add(j);
    let depth = indentOf(text);
    for (let j = i - 1; j >= 0 && depth > 0; j--) {
      const above = indentOf(lines[j]?.text ?? "");
      if (above >= depth) continue;
      near.add(j);
      depth = above;
    }
  }
  return near;
}

function indentOf(text: string): number {
  return text.length - text.trimStart().length;
}

/** A value without fields has no lines, so that a first field is shown as added and nothing as removed. */
function ownLines(value: unknown, reading: Reading): string[] {
  return value === null || Object.keys(fieldsOf(value)).length === 0 ? [] : render(value, reading);
}

/** The state before and after a policy, as the policy itself reports it. */
function policyChange({ message }: Row): { before: unknown; after: unknown } | undefined {
  const { snapshot } = fieldsOf(message.result);
  if (message.type !== "policy" || typeof snapshot !== "object" || snapshot === null) return undefined;
  const { before = null, after = null } = fieldsOf(snapshot);
  return { before, after };
}

/** A key of YAML or JSON at the beginning of a line, with its indentation, dashes and colon; a diff's sign comes first. */
export const KEY = /^((?:[+-] )?\s*(?:- )*)("[^"]*"|[\w./:@-]+)(:(?:\s|$))/;

/** How far the continuation of a line is indented: below a key by two, else as far as the line itself. */
export function hangingIndent({ text, note: isNote, hang }: DetailLine): number {
  if (isNote) return 0;
  if (hang !== undefined) return hang;
  const key = KEY.exec(text);
  return key === null ? (/^(?:[+-] )?\s*(?:- )*/.exec(text)?.[0].length ?? 0) : (key[1] ?? "").length + 2;
}

/** The detail pane as text for the clipboard. */
export function detailText(detail: Detail): string {
  return detail.lines.map((line) => line.text).join("\n");
}

/** Columns of a sign and the space after it. */
const SIGN = 2;

const TITLES: Readonly<Record<Mode, string>> = {
  raw: "Raw event",
  snapshot: "Snapshot",
  diff: "Snapshot diff",
  tree: "Decisions",
};

function join(...parts: readonly string[]): string {
  return parts.filter(Boolean).join(" · ");
}

function plain(text: string): DetailLine {
  return { text };
}

function note(text: string): DetailLine {
  return { text, note: true };
}

/** `at 2.385 ms, took 289 µs`. */
function timing(row: Row): string {
  if (row.end === undefined) return "";
  const at = `at ${duration(row.end)}`;
  return row.start === undefined ? at : `${at}, took ${duration(row.end - row.start)}`;
}

/** The event, after its decoded body or, for a route selection, the reason of each candidate. */
function rawLines(row: Row, reading: Reading): DetailLine[] {
  const event = render(withReadableHeaders(withShortBody(row)), reading).map(plain);
  const first = row.message.type === "routeSelection" ? candidateLines(row.message) : bodyLines(row, reading);
  return first.length === 0 ? event : [...first, plain(""), note("── event ──"), ...event];
}

/** Longer base64 is cut; the decoded body is above it. */
const MAX_BASE64 = 4096;

function withShortBody({ event, message }: Row): Fields {
  const { body } = message;
  if (typeof body !== "string" || body.length <= MAX_BASE64) return event;
  return { ...event, message: { ...message, body: `${body.slice(0, MAX_BASE64)}… (${body.length} characters)` } };
}

function bodyLines({ message, encodings }: Row, { decompress }: Reading): DetailLine[] {
  const { type, stage, body, truncated, compressed } = message;
  if ((type !== "bodySnapshot" && type !== "streamMessage") || typeof body !== "string") return [];
  const ofBody = stage === "response" ? encodings.response : encodings.request;
  // A message has its own compression, whose state is in the messages before it.
  const encoding = type === "bodySnapshot" ? ofBody : compressed === true ? "compressed" : "";
  const { note: about, text } = readBody(body, encoding, truncated === true, decompress);
  if (text === undefined) return [note(`── body: ${about}, binary ──`)];
  return [note(`── body: ${about} ──`), ...(text === "" ? [] : harmless(text).split("\n").map(plain))];
}

/** The selected route first, then those that matched too, then the others, in the order of the event. */
function candidateLines(message: Fields): DetailLine[] {
  const candidates = candidatesOf(message);
  if (candidates.length === 0) return [];
  const width = Math.max(...candidates.map(({ name }) => columnsOf(name)));
  const selected = selectedName(message);
  const rank = ({ name, matched }: CandidateLine) => (name === selected ? 0 : matched ? 1 : 2);
  const lines = candidates
    .toSorted((a, b) => rank(a) - rank(b))
    .map((line) => ({
      text: harmless(`${line.matched ? "✓" : "✗"} ${fit(line.name, width)}  ${line.reason}`),
      hang: SIGN + width + 2,
    }));
  // Some candidates may be of other hosts, which do not count.
  const omitted = evaluatedCount(message) - candidates.length;
  return [note("── candidates ──"), ...lines, ...(omitted > 0 ? [note(`and ${omitted} more`)] : [])];
}

function render(value: unknown, { write }: Reading): string[] {
  return harmless(write(value).trimEnd()).split("\n");
}

/** A request's state for reading: without absent values, with its bodies decoded. */
function presentable(state: Fields, { decompress }: Reading): Fields {
  const clean = withoutNulls(withReadableHeaders(state));
  const decoded = ["request", "response"].flatMap((side) => {
    const part = fieldsOf(clean[side]);
    return typeof part.body === "string"
      ? [[side, { ...part, body: bodyValue(part.body, encodingOf(part), decompress) }] as const]
      : [];
  });
  return { ...clean, ...Object.fromEntries(decoded) };
}

function withoutNulls(value: Fields): Fields {
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, entry]) => entry !== null)
      .map(([key, entry]) => [
        key,
        typeof entry === "object" && !Array.isArray(entry) ? withoutNulls(fieldsOf(entry)) : entry,
      ]),
  );
}
