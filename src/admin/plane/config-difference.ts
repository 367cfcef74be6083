import type { DiffLine } from "../../report/diff.ts";

/** How the configuration files differ from the texts in effect, without secrets; `unknown`: why that is not known. */
export type ConfigDifference = { readonly hunks: readonly DifferenceHunk[] } | { readonly unknown: string };

/** Changes that are close together, with lines around them. A secret that has changed is a change between two lines that look alike. */
export interface DifferenceHunk {
  /** Its name; a file that has appeared or gone is compared with an empty text. */
  readonly file: string;
  /** Numbers of the first line, from 1 on, in the text in effect and in the file. */
  readonly before: number;
  readonly after: number;
  readonly lines: readonly DiffLine[];
}
