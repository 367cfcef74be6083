/** Pages of docs/ as the build puts them beside the view: data, which a page shows as elements and text. */

import { isObject } from "../src/base/fields.ts";

/** Text with emphasis; strings are shown as they are. */
export type Inline =
  | string
  | { readonly code: string }
  | { readonly strong: readonly Inline[] }
  | { readonly em: readonly Inline[] }
  /** `link`: a place of the view, such as `#/docs/trace`, or a URL. */
  | { readonly link: string; readonly text: readonly Inline[] };

export type Block =
  | { readonly heading: number; readonly id: string; readonly text: readonly Inline[] }
  | { readonly paragraph: readonly Inline[] }
  | { readonly code: string }
  | { readonly list: readonly (readonly Inline[])[]; readonly ordered: boolean }
  /** Rows of cells; the first one is the head. */
  | { readonly table: readonly (readonly (readonly Inline[])[])[] };

/** A page of docs/; the first block is its title. */
export interface Document {
  readonly blocks: readonly Block[];
}

/** The pages at hand, without those of single policies, in alphabetical order. */
export interface Contents {
  readonly documents: readonly { readonly name: string; readonly title: string }[];
}

/** The name of the list of pages; no page has it. */
export const CONTENTS = "contents";

/** The file of a page beside the view: `name` is `trace` or `policies/cors`, `version` a hash of all pages. */
export function fileOf(name: string, version: string): string {
  return `doc-${name.replaceAll(/[^\w-]/g, "-")}-${version}.json`;
}

export function isDocument(value: unknown): value is Document {
  return isObject(value) && Array.isArray(value.blocks);
}

export function isContents(value: unknown): value is Contents {
  return isObject(value) && Array.isArray(value.documents);
}
