import { z } from "zod";
import type { ConfigOf } from "../resolve.ts";

const headerName = z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, { message: "not a header name" });
const headerValue = z
  .string()
  // Any character but controls, of which only a tab is allowed (RFC 9110 5.5). It becomes a pattern of the JSON Schema,
  // whose readers do not all know \P{Cc}.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not stand there.
  .regex(/^[^\x00-\x08\x0a-\x1f\x7f-\x9f]*$/, {
    message: "not a header value: line breaks and control characters are not allowed",
  });

/** `requestHeaderModifier` and `responseHeaderModifier` (reference 3.13). */
export const schema = z
  .strictObject({
    add: z.record(headerName, headerValue).optional().describe("Headers to add beside those that are there."),
    set: z.record(headerName, headerValue).optional().describe("Headers to set, replacing those of the same name."),
    remove: z.array(headerName).optional().describe("Names of headers to remove."),
  })
  .meta({ id: "HeaderModifier", description: "Changes headers, in the order add, set, remove." });

export type HeaderModifier = ConfigOf<typeof schema>;
