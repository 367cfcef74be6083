import { resolve } from "node:path";
import type { Finding } from "../converted.ts";
import type { Findings } from "../findings.ts";
import { wholePath } from "../paths.ts";
import { isUsablePattern } from "../patterns.ts";
import { isRead, REMEDIES, whyIdle } from "./directives.ts";
import type { Directive } from "./parse.ts";

/** A configuration that is converted, and what was found in it. */
export class Reading {
  /** The directives of the block `http`. */
  readonly http: readonly Directive[];
  readonly #findings: Findings;
  readonly #folder: string | undefined;

  /** `folder`: of the configuration; undefined: not known. `findings`: those so far; more are added. */
  constructor(http: readonly Directive[], findings: Findings, folder: string | undefined) {
    this.http = http;
    this.#findings = findings;
    this.#folder = folder;
  }

  find(severity: Finding["severity"], at: Directive, message: string, remedy?: string): void {
    this.#findings.find(severity, at, message, remedy);
  }

  /** Relative paths are relative to the folder of the configuration. */
  file(path: string): string {
    return this.#folder === undefined ? path : resolve(this.#folder, path);
  }

  /** Says that a directive is not converted. */
  report(at: Directive): void {
    // A finding says already why its files were not read.
    if (at.name === "include") return;
    const idle = whyIdle(at.name);
    if (idle !== undefined) this.find("note", at, `${at.name} is left out: ${idle}`);
    else this.find("error", at, `${at.name} has no equivalent here`, REMEDIES.get(at.name));
  }

  /** Reports what is in a block and no part of the conversion reads. */
  reportUnread(block: readonly Directive[]): void {
    for (const each of block) {
      // For `Connection`, which the gateway writes itself.
      if (each.name === "map" && each.args[0] === "$http_upgrade") continue;
      if (!isRead(each.name)) this.report(each);
    }
  }

  /** Whether a regular expression can be used; a finding says why not, and what becomes of it. */
  isUsable(pattern: string, at: Directive, result = "is left out"): boolean {
    if (isUsablePattern(wholePath(pattern))) return true;
    this.find(
      "error",
      at,
      `the regular expression ${pattern} ${result}`,
      "patterns are RE2, without look-around and back-references",
    );
    return false;
  }
}
