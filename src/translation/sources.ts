import type { Path } from "../base/paths.ts";
import type { TextSource } from "../policies/schema/source.ts";
import type { Report } from "./problems/problem.ts";

/** Reads the files and documents that a configuration names, and collects their URLs. Problems are reported at `path`. */
export interface Sources {
  readonly urls: readonly string[];
  /** The same for reading a value again after its problems were reported; they are only counted. */
  again(report: Report): Sources;
  /** The text of a file; undefined when it cannot be read. */
  readFile(path: Path, name: string): string | undefined;
  /** As `readFile`, for a binary file. */
  readBytes(path: Path, name: string): Buffer | undefined;
  /** A fetched document; undefined if it has not been fetched yet or could not be. */
  readUrl(path: Path, url: string): string | undefined;
  /** The text that `source` stands for; undefined as for files and URLs. */
  readText(path: Path, source: TextSource): string | undefined;
}
