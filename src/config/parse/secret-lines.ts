/** Which lines of a configuration may hold secrets, judged by the text alone: also of one that cannot be parsed. */
import { REDACTED, redactUrls, SECRET_PARAMETERS } from "../../base/redaction.ts";

/** A field whose value may be a secret. */
const SECRET_LINE =
  /(key|secret|token|passw|credential|authorization|cookie)[\w-]*["']?\s*:|(basic|backend)Auth["']?\s*:\s*[^\s{[]/i;
/** The same, written as a name and a value beside it. */
const NAMED_SECRET =
  /\bname["']?\s*:\s*["']?[\w.-]{0,64}(?:key|secret|token|passw|credential|authorization|cookie)[^\n]{0,200}?\bvalue["']?\s*:/i;
/** Fields with such a name that hold no secret, and objects that are a name without a value. */
const HARMLESS =
  /\b(?:maxTokens|tokensPerFill|allowCredentials)["']?\s*:\s*(?:-?\d+|true|false)\b|\{\s*name\s*:\s*["']?[\w.-]{1,64}["']?\s*\}/g;
/** A header or parameter whose value stands in another field. */
const NAMED = /^(?<before>.*?)["']?\bname["']?\s*:\s*["']?(?<name>[\w.-]+)/i;
/** The policy `apiKey`, if its fields have lines of their own, and these fields. */
const API_KEY = /^\s*(?:-\s+)*["']?apiKey["']?\s*:\s*(?:#.*)?$/;
const API_KEY_FIELD = /^\s*(?:mode|location|keys)\s*:/;
const ALIAS = /(?:^|[\s,[{:-])\*([\w-]+)/g;
/** A line that begins with a field: all up to its value. */
const FIELD = /^\s*(?:-\s+)*["']?[\w.-]+["']?\s*:/;
const ANCHOR = /(?:^|[\s,[{:-])&([\w-]+)/;

/** Whether a text, of one line or more, may hold a secret. */
export function mayHoldSecret(text: string): boolean {
  return (
    SECRET_LINE.test(text) || NAMED_SECRET.test(text) || (text.includes("@") && text.split(/\s+/).some(hasPassword))
  );
}

/** `user:password@`. A pattern for it would take time by the square of a line's length, such as that of JSON without line breaks. */
function hasPassword(word: string): boolean {
  const colon = word.indexOf(":", 1);
  return colon > 0 && word.lastIndexOf("@") > colon;
}

/**
 * The lines of a text, without what may be secret: values of fields that are named like a secret, over all their lines, of headers and
 * parameters that are `secret`, and what is defined elsewhere for them. It leaves out too much rather than too little.
 */
export function linesWithoutSecrets(text: string, secret: ReadonlySet<string>): string[] {
  const lines = text.split("\n");
  const hidden = new Set<number>();
  /** Lines within a value that began before them. */
  const inner = new Set<number>();
  const hideFrom = (start: number): void => {
    hidden.add(start);
    if (inner.has(start)) return;
    for (const index of secretLines(lines, start)) {
      hidden.add(index);
      inner.add(index);
    }
  };
  for (const [index, line] of lines.entries()) {
    const judged = line.replace(HARMLESS, "");
    const { before = "", name } = NAMED.exec(judged)?.groups ?? {};
    const lower = line.toLowerCase();
    const isNamed = name !== undefined && (secret.has(name.toLowerCase()) || SECRET_PARAMETERS.has(name));
    if (isNamed && /^[\s-]*$/.test(before)) for (const each of itemLines(lines, index)) hideFrom(each);
    else if (isNamed || mayHoldSecret(judged) || [...secret].some((each) => lower.includes(each))) hideFrom(index);
  }
  for (let size = -1; size !== hidden.size; ) {
    size = hidden.size;
    const aliases = new Set(
      [...hidden].flatMap((at) => Array.from((lines[at] ?? "").matchAll(ALIAS), ([, name]) => name)),
    );
    for (const [index, line] of lines.entries()) if (aliases.has(ANCHOR.exec(line)?.[1])) hideFrom(index);
  }
  return lines.map((line, index) => {
    if (!hidden.has(index)) return redactUrls(line);
    const field = inner.has(index) ? undefined : FIELD.exec(line)?.[0];
    return field === undefined ? `${" ".repeat(indentOf(line))}${REDACTED}` : `${field} ${REDACTED}`;
  });
}

/** The lines of a value that are left out: all, except that those of the policy `apiKey` are judged one by one. */
function* secretLines(lines: readonly string[], start: number): Generator<number> {
  const isPolicy = API_KEY.test(lines[start] ?? "");
  const judged = new Set<number>();
  let indent: number | undefined;
  for (const index of valueLines(lines, start)) {
    const line = lines[index] ?? "";
    indent ??= indentOf(line);
    if (isPolicy && indentOf(line) === indent && API_KEY_FIELD.test(line))
      for (const each of [index, ...valueLines(lines, index)]) judged.add(each);
    if (!judged.has(index)) yield index;
  }
}

/** The lines after that of a field which belong to its value: deeper ones, items of a list, and lines inside of its brackets and quotes. */
function* valueLines(lines: readonly string[], start: number): Generator<number> {
  const first = lines[start] ?? "";
  const indent = contentOf(first);
  const value = first.slice(first.indexOf(":", indent) + 1).trim();
  let isPending = value === "";
  let text = first;
  for (let index = start + 1; index < lines.length; index++) {
    const line = lines[index] ?? "";
    if (line.trim() === "" || /^\s*#/.test(line)) continue;
    const own = indentOf(line);
    const isDeeper = own > indent || (own === indent && line.slice(own).startsWith("-"));
    if (!isDeeper && !isPending && !isOpen(text)) return;
    yield index;
    isPending = false;
    text += `\n${line}`;
  }
}

/** Whether brackets or quotes of a field are not closed. */
function isOpen(value: string): boolean {
  const opened = value.match(/[[{]/g)?.length ?? 0;
  const closed = value.match(/[\]}]/g)?.length ?? 0;
  const quote = /:\s*(["'])/.exec(value)?.[1];
  const inQuotes = quote !== undefined && value.split(quote).length % 2 === 0;
  return opened > closed || inQuotes;
}

/** The item of a list that a line belongs to. */
function* itemLines(lines: readonly string[], at: number): Generator<number> {
  const indent = contentOf(lines[at] ?? "");
  let start = at;
  while (start > 0 && indentOf(lines[start] ?? "") >= indent) start--;
  for (let index = start; index < lines.length; index++) {
    const line = lines[index] ?? "";
    if (index > at && line.trim() !== "" && (indentOf(line) < indent || isItem(line, indent))) return;
    if (index >= start) yield index;
  }
}

function isItem(line: string, indent: number): boolean {
  return contentOf(line) === indent && line.slice(indentOf(line)).startsWith("- ");
}

/** Where the text of a line begins. */
function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

/** Where it begins after the dashes of list items. */
function contentOf(line: string): number {
  return /^\s*(?:-\s+)*/.exec(line)?.[0].length ?? 0;
}
