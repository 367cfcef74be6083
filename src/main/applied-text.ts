import { promisify } from "node:util";
import { deflateRaw, inflateRaw } from "node:zlib";
import type { ConfigDifference, DifferenceHunk } from "../admin/plane/config-difference.ts";
import { type NamedText, readConfigFiles } from "../config/parse/config-files.ts";
import { type Digests, InputReader, type Inputs } from "../config/parse/inputs.ts";
import { linesWithoutSecrets } from "../config/parse/secret-lines.ts";
import { type DiffLine, diffLines } from "../report/diff.ts";

const compress = promisify(deflateRaw);
const decompress = promisify(inflateRaw);

/** Characters of all files at most: they are compared on the main thread. */
const LARGEST = 4 * 1024 * 1024;
/** Lines between the first and the last change at most: they are compared in time by their square, 2,000 in about 20 ms. */
const LONGEST = 2000;
/** Lines around a change that are shown with it. */
const CONTEXT = 3;

/** The texts of the files in effect, to compare them with what the files have become. They are kept compressed: 10,000 routes take about 100 KiB. */
export class AppliedText {
  readonly #paths: readonly string[];
  /** By the file's name; undefined if they were too large, or changed after they were loaded. */
  readonly #texts: Promise<ReadonlyMap<string, Buffer> | undefined>;

  /** `paths`: files and folders; `files`: what was loaded, as digests. */
  constructor(paths: readonly string[], files: Digests) {
    this.#paths = paths;
    const { texts, inputs, error } = textsIn(paths);
    const isSame = error === undefined && [...inputs.files].every(([path, digest]) => files.get(path) === digest);
    this.#texts = isSame ? compressed(texts).catch(() => undefined) : Promise.resolve(undefined);
  }

  /** How the files differ now, without their secrets; `secret`: names of header fields and parameters. */
  async difference(secret: ReadonlySet<string>): Promise<ConfigDifference> {
    const kept = await this.#texts;
    if (kept === undefined)
      return { unknown: "its text in effect was not kept: it is too large, or changed while it was read" };
    const { texts, error } = textsIn(this.#paths);
    if (error !== undefined) return { unknown: error };
    if (!areComparable(texts)) return { unknown: "the file is too large to be compared" };
    const now = new Map(texts.map(({ name, text }) => [name, text]));
    const hunks: DifferenceHunk[] = [];
    for (const file of new Set([...kept.keys(), ...now.keys()])) {
      const buffer = kept.get(file);
      const before = buffer === undefined ? "" : (await decompress(buffer)).toString();
      const found = hunksOf(before, now.get(file) ?? "", secret);
      if (found === undefined)
        return { unknown: `more than ${LONGEST} lines lie between the first and the last change of ${file}` };
      hunks.push(...found.map((hunk) => ({ file, ...hunk })));
    }
    return { hunks };
  }
}

/** The texts as they are on disk; `error`: why one of them cannot be read. */
function textsIn(paths: readonly string[]): {
  readonly texts: readonly NamedText[];
  readonly inputs: Inputs;
  readonly error?: string;
} {
  const reader = new InputReader();
  const { texts, problems } = readConfigFiles(paths, reader);
  const [first] = problems;
  const { inputs } = reader;
  return { texts, inputs, ...(first !== undefined && { error: `${first.file}: ${first.message}` }) };
}

function areComparable(texts: readonly NamedText[]): boolean {
  return texts.reduce((sum, { text }) => sum + text.length, 0) <= LARGEST;
}

/** Undefined if they are too large. */
async function compressed(texts: readonly NamedText[]): Promise<ReadonlyMap<string, Buffer> | undefined> {
  if (!areComparable(texts)) return undefined;
  return new Map(await Promise.all(texts.map(async ({ name, text }) => [name, await compress(text)] as const)));
}

/** Undefined if too many lines would have to be compared. */
function hunksOf(
  before: string,
  after: string,
  secret: ReadonlySet<string>,
): Omit<DifferenceHunk, "file">[] | undefined {
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
  return inHunks(numbered);
}

/** A line with the numbers, from 1 on, that it or the next one has before and after. */
interface Numbered extends DiffLine {
  readonly before: number;
  readonly after: number;
}

/** The changes with the lines around them. */
function inHunks(lines: readonly Numbered[]): Omit<DifferenceHunk, "file">[] {
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
