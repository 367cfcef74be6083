import { z } from "zod";

/** A text in the configuration, or where it can be read. Branded, so that `Resolved` can replace it by the text. */
export type TextSource = (string | { readonly file: string } | { readonly url: string }) & z.core.$brand<"TextSource">;

/** A field that is the name of a file. Resolution replaces it by the file's text. */
export interface FileName {
  readonly fileName: string;
}

/** A field whose value is a file name, without `{file: …}`. */
export const fileName = z
  .string()
  .min(1)
  .transform((name): FileName => ({ fileName: name }));

/** For schemas with their own syntax for a file. */
export function inFile(file: string): TextSource {
  return sourceBrand.parse({ file });
}

/** For schemas with their own syntax for a text. */
export function asText(text: string): TextSource {
  return sourceBrand.parse(text);
}

/** Text given inline, by file or by URL; `what` names it in the documentation, such as `the key set`. */
export function textSource(what: string) {
  return z.union([fileOf(what), z.strictObject({ url: fetched(what) }), inline(what)]).brand("TextSource");
}

/** The same without a URL, for secrets, which should not be fetched over a network. */
export function localSource(what: string) {
  return z.union([fileOf(what), inline(what)]).brand("TextSource");
}

function fileOf(what: string) {
  return z.strictObject({ file: z.string().min(1).describe(`File with ${what}; changes are picked up.`) });
}

function fetched(what: string) {
  return z
    .url({ protocol: /^https?$/, error: "not a URL that begins with https:// or http://" })
    .refine((url) => !hasPassword(url), {
      error: "must not have a user and a password: they would not be sent, and URLs appear in logs",
    })
    .describe(
      `URL of ${what}, fetched again every 15 minutes. While it cannot be fetched, requests that need it get 503.`,
    );
}

/** False for text that is not a URL, which `z.url` reports. */
function hasPassword(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && (url.username !== "" || url.password !== "");
}

function inline(what: string) {
  return z.string().min(1).describe(`The text itself: ${what}.`);
}

const sourceBrand = z.union([z.string(), z.strictObject({ file: z.string() })]).brand("TextSource");
