/** Files that a configuration includes, from its folder and those below it. */
import { readdirSync, realpathSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { codeOf, messageOf } from "../../base/errors.ts";
import { readText } from "../../config/parse/inputs.ts";
import type { Place } from "./converted.ts";
import { type Findings, SyntaxProblem } from "./findings.ts";

/** Limits of one conversion, so that a cycle or a huge folder ends in an error. */
const MAX_FILES = 500;
const MAX_BYTES = 16 * 1024 * 1024;

interface Included {
  readonly files: readonly IncludedFile[];
  /** Some were not read, so a restriction may be missing. */
  readonly isPartial: boolean;
}

interface IncludedFile {
  readonly name: string;
  readonly text: string;
  /** This file and those that include it. */
  readonly open: readonly string[];
}

export class Includes {
  /** The file itself. */
  readonly opened: readonly string[];
  readonly #root: string | undefined;
  readonly #findings: Findings;
  #files = 1;
  #bytes: number;

  /** `path` undefined: nothing is included. `bytes`: of the configuration itself. */
  constructor(path: string | undefined, bytes: number, findings: Findings) {
    const real = path === undefined ? undefined : realpathSync(path);
    this.opened = real === undefined ? [] : [real];
    this.#root = real && dirname(real);
    this.#bytes = bytes;
    this.#findings = findings;
  }

  /**
   * The files that a pattern with `*` and `?` stands for. Those that are not in the folder of the configuration become findings.
   * @throws SyntaxProblem
   */
  read(pattern: string, at: Place, open: readonly string[]): Included {
    const skip = (message: string, remedy: string): Included => {
      this.#findings.find("error", at, message, remedy);
      return { files: [], isPartial: true };
    };
    const root = this.#root;
    if (root === undefined) return skip("standard input includes no files", "pass the file instead of -");
    const wanted = resolve(root, pattern);
    if (!isBelow(root, wanted))
      return skip(`include ${pattern}: not below the folder of the file`, "copy it there, and include it from there");
    const files: IncludedFile[] = [];
    let isPartial = false;
    for (const each of matching(wanted)) {
      let real: string;
      try {
        real = realpathSync(each);
      } catch {
        return skip(`include ${pattern}: there is no such file`, "pass the configuration with all its files");
      }
      if (!isBelow(root, real)) {
        skip(`include ${pattern}: ${relative(root, each)} leads out of the folder of the file`, "copy it there");
        isPartial = true;
        continue;
      }
      if (open.includes(real)) throw new SyntaxProblem(at, `${pattern} includes itself`);
      if (++this.#files > MAX_FILES) throw new SyntaxProblem(at, `more than ${MAX_FILES} files`);
      const text = textOf(real, at);
      this.#bytes += text.length;
      if (this.#bytes > MAX_BYTES) throw new SyntaxProblem(at, "the files have more than 16 MiB together");
      files.push({ name: relative(process.cwd(), each) || each, text, open: [...open, real] });
    }
    return { files, isPartial };
  }
}

function isBelow(folder: string, path: string): boolean {
  return path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

/** @throws SyntaxProblem if it cannot be read */
function textOf(path: string, at: Place): string {
  try {
    return readText(path);
  } catch (error) {
    throw new SyntaxProblem(at, `cannot read ${path}: ${messageOf(error)}`);
  }
}

/** The paths that a pattern with `*` and `?` stands for, in the order of their names; the pattern itself if it has neither. */
function matching(pattern: string): readonly string[] {
  if (!/[*?]/.test(pattern)) return [pattern];
  const parts = pattern.split(sep);
  let paths = [""];
  for (const part of parts.slice(1)) {
    if (!/[*?]/.test(part)) {
      paths = paths.map((path) => `${path}${sep}${part}`);
      continue;
    }
    const text = part
      .replace(/[.+^${}()|[\]\\]/g, "\\$&")
      .replaceAll("*", "[^/]*")
      .replaceAll("?", "[^/]");
    const test = new RegExp(`^(?!\\.)${text}$`);
    paths = paths.flatMap((path) =>
      namesIn(path)
        .filter((name) => test.test(name))
        .sort()
        .map((name) => join(path, name)),
    );
  }
  return paths;
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder === "" ? sep : folder);
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return [];
    throw error;
  }
}
