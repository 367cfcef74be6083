import { z } from "zod";

/** What stands for a text: the text itself, or where it is. */
export type TextSource = (string | { readonly file: string } | { readonly url: string }) & z.core.$brand<"TextSource">;

/** The name of a file whose text is used. */
export interface FileName {
  readonly fileName: string;
}

/** A file that is named directly, without `{file: …}`. */
export const fileName = z
  .string()
  .min(1)
  .transform((name): FileName => ({ fileName: name }));

/** A file in place of a text, where a schema has a shape of its own for it. */
export function inFile(file: string): TextSource {
  return sourceBrand.parse({ file });
}

/** A text where a schema has a shape of its own for it. */
export function asText(text: string): TextSource {
  return sourceBrand.parse(text);
}

/** A text that stands in the configuration, in a file or behind a URL; `what` names it, such as `the key set`. */
export function textSource(what: string) {
  return z.union([fileOf(what), z.strictObject({ url: fetched(what) }), inline(what)]).brand("TextSource");
}

/** The same for what nobody should fetch over a network. */
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
      error: "must not have a user and a password: they would not be sent, and URLs stand in logs",
    })
    .describe(`URL of ${what}, fetched again every 15 minutes.`);
}

/** False also for what is no URL. */
function hasPassword(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && (url.username !== "" || url.password !== "");
}

function inline(what: string) {
  return z
    .string()
    .min(1)
    .describe(`${what[0]?.toUpperCase()}${what.slice(1)} itself.`);
}

const sourceBrand = z.union([z.string(), z.strictObject({ file: z.string() })]).brand("TextSource");
