import { promisify } from "node:util";
import { deflateRaw, inflateRaw } from "node:zlib";
import type { ConfigDifference, DifferenceHunk } from "../admin/plane/config-difference.ts";
import { messageOf } from "../base/errors.ts";
import { type Digests, InputReader } from "../config/parse/inputs.ts";
import { linesWithoutSecrets } from "../config/parse/secret-lines.ts";
import { type DiffLine, diffLines } from "../report/diff.ts";

const compress = promisify(deflateRaw);
const decompress = promisify(inflateRaw);

/** Characters of a file at most: it is compared on the main thread. */
const LARGEST = 4 * 1024 * 1024;
/** Lines between the first and the last change at most: they are compared in time by their square, 2,000 in about 20 ms. */
const LONGEST = 2000;
/** Lines around a change that are shown with it. */
const CONTEXT = 3;

/** The text of the file in effect, to compare it with what the file has become. It is kept compressed: 10,000 routes take about 100 KiB. */
export class AppliedText {
  readonly #path: string;
  /** Undefined if it was too large, or changed after it was loaded. */
  readonly #text: Promise<Buffer | undefined>;

  /** `files`: what was loaded, as digests. */
  constructor(path: string, files: Digests) {
    this.#path = path;
    const text = textOf(path, files.get(path));
    const isKept = text !== undefined && text.length <= LARGEST;
    this.#text = isKept ? compress(text).catch(() => undefined) : Promise.resolve(undefined);
  }

  /** How the file differs now, without its secrets; `secret`: names of header fields and parameters. */
  async difference(secret: ReadonlySet<string>): Promise<ConfigDifference> {
    const compressed = await this.#text;
    if (compressed === undefined)
      return { unknown: "its text in effect was not kept: it is too large, or changed while it was read" };
    const before = (await decompress(compressed)).toString();
    let after: string;
    try {
      after = new InputReader().readText(this.#path);
    } catch (error) {
      return { unknown: `the file cannot be read: ${messageOf(error)}` };
    }
    if (after.length > LARGEST) return { unknown: "the file is too large to be compared" };
    return (
      hunksOf(before, after, secret) ?? {
        unknown: `more than ${LONGEST} lines lie between its first and its last change`,
      }
    );
  }
}

/** Undefined if it is not the one with this digest. */
function textOf(path: string, digest: string | undefined): string | undefined {
  const reader = new InputReader();
  try {
    const text = reader.readText(path);
    return reader.inputs.files.get(path) === digest ? text : undefined;
  } catch {
    return undefined;
  }
}

/** Undefined if too many lines would have to be compared. */
function hunksOf(before: string, after: string, secret: ReadonlySet<string>): ConfigDifference | undefined {
  const [old, now] = [before.split("\n"), after.split("\n")];
  const shortest = Math.min(old.length, now.length);
  let start = 0;
  while (start < shortest && old[start] === now[start]) start++;
  let end = 0;
  while (end < shortest - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
  if (old.length - start - end > LONGEST || now.length - start - end > LONGEST) return undefined;
  const first = Math.max(0, start - CONTEXT);
  const last = Math.max(0, end - CONTEXT);
  const compared = diffLines(old.slice(first, old.length - last), now.slice(first, now.length - last));
  // Compared as they are, so that a secret that has changed is a change.
  const [oldShown, nowShown] = [linesWithoutSecrets(before, secret), linesWithoutSecrets(after, secret)];
  let [oldAt, nowAt] = [first, first];
  const numbered = compared.map(({ sign }): Numbered => {
    const line = {
      before: oldAt + 1,
      after: nowAt + 1,
      sign,
      text: (sign === "+" ? nowShown[nowAt] : oldShown[oldAt]) ?? "",
    };
    if (sign !== "+") oldAt++;
    if (sign !== "-") nowAt++;
    return line;
  });
  return { hunks: inHunks(numbered) };
}

/** A line with the numbers, from 1 on, that it or the next one has before and after. */
interface Numbered extends DiffLine {
  readonly before: number;
  readonly after: number;
}

/** The changes with the lines around them. */
function inHunks(lines: readonly Numbered[]): DifferenceHunk[] {
  const hunks: { before: number; after: number; lines: DiffLine[]; next: number }[] = [];
  for (const [index, line] of lines.entries()) {
    if (!lines.slice(Math.max(0, index - CONTEXT), index + CONTEXT + 1).some(({ sign }) => sign !== " ")) continue;
    const { before, after, sign, text } = line;
    const last = hunks.at(-1);
    if (last?.next === index) {
      last.lines.push({ sign, text });
      last.next++;
    } else hunks.push({ before, after, lines: [{ sign, text }], next: index + 1 });
  }
  return hunks.map(({ next: _next, ...hunk }) => hunk);
}
