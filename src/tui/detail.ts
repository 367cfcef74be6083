import { stringify } from "yaml";
import { diffLines } from "./diff.ts";
import { duration } from "./duration.ts";
import { type Fields, fields } from "./fields.ts";
import type { Row } from "./rows.ts";
import { harmless } from "./text.ts";

export type Mode = "raw" | "snapshot" | "diff";
export type Format = "yaml" | "json";

/** What the detail pane shows of a row. */
export interface Detail {
  readonly title: string;
  readonly lines: readonly DetailLine[];
}

export interface DetailLine {
  readonly text: string;
  readonly sign?: "+" | "-";
  /** Said by the client, not part of the data. */
  readonly note?: true;
}

/** The details of a row; `undefined` stands for no row yet. */
export function detailOf(row: Row | undefined, mode: Mode, format: Format): Detail {
  if (row === undefined) return { title: TITLES[mode], lines: [note("No event available yet.")] };
  if (mode === "raw") return { title: join(TITLES.raw, timing(row)), lines: rawLines(row, format) };
  const { snapshot } = row;
  if (snapshot === undefined) return { title: TITLES[mode], lines: [note("No snapshot available yet.")] };
  const title = join(TITLES[mode], snapshot.stage);
  const after = render(presentable(snapshot.state), format);
  if (mode === "snapshot") return { title, lines: after.map(plain) };
  if (snapshot.previous === undefined) return { title: join(title, "first"), lines: after.map(plain) };
  const before = render(presentable(snapshot.previous), format);
  const lines = diffLines(before, after);
  if (lines.every((line) => line.sign === " ")) return { title: join(title, "no change"), lines: after.map(plain) };
  return {
    title,
    lines: lines.map(({ sign, text }) => (sign === " " ? plain(`  ${text}`) : { text: `${sign} ${text}`, sign })),
  };
}

/** The detail pane as text for the clipboard. */
export function detailText(detail: Detail): string {
  return detail.lines.map((line) => line.text).join("\n");
}

const TITLES: Readonly<Record<Mode, string>> = { raw: "Raw event", snapshot: "Snapshot", diff: "Snapshot diff" };

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

/** The event as it came, and below a body's base64 what it stands for. */
function rawLines(row: Row, format: Format): DetailLine[] {
  const lines = render(row.event, format).map(plain);
  const { type, body } = row.message;
  if (type !== "bodySnapshot" || typeof body !== "string") return lines;
  const decoded = Buffer.from(body, "base64");
  const heading = `── body, ${decoded.length} bytes${row.message.truncated === true ? ", cut short" : ""} ──`;
  const text = readable(decoded);
  const shown =
    text === undefined ? [note("(binary)")] : decoded.length === 0 ? [] : harmless(text).split("\n").map(plain);
  return [...lines, plain(""), note(heading), ...shown];
}

function render(value: unknown, format: Format): string[] {
  // lineWidth 0: the pane wraps by its own width, folding in the YAML would change with it.
  const text = format === "json" ? JSON.stringify(value, null, 2) : stringify(value, { lineWidth: 0 });
  return harmless(text.trimEnd()).split("\n");
}

/** A request's state for reading: without absent values, with its bodies decoded. */
function presentable(state: Fields): Fields {
  const clean = withoutNulls(state);
  const decoded = ["request", "response"].flatMap((side) => {
    const part = fields(clean[side]);
    return typeof part.body === "string" ? [[side, { ...part, body: decodeBody(part.body) }] as const] : [];
  });
  return { ...clean, ...Object.fromEntries(decoded) };
}

function withoutNulls(value: Fields): Fields {
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, entry]) => entry !== null)
      .map(([key, entry]) => [
        key,
        typeof entry === "object" && !Array.isArray(entry) ? withoutNulls(fields(entry)) : entry,
      ]),
  );
}

/** A base64 body as JSON or text; as it came when it is neither. */
function decodeBody(body: string): unknown {
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(body)) return body;
  const text = readable(Buffer.from(body, "base64"));
  if (text === undefined) return body;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function readable(bytes: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}
