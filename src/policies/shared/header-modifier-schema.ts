import { z } from "zod";

const headerName = z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, { message: "not a header name" });
const headerValue = z
  .string()
  // Any character but controls, of which only a tab is allowed (RFC 9110 5.5).
  .regex(/^[\t\P{Cc}]*$/u, { message: "not a header value: line breaks and control characters are not allowed" });

/** `requestHeaderModifier` and `responseHeaderModifier` (reference 3.13). */
export const schema = z
  .strictObject({
    add: z.record(headerName, headerValue).optional().describe("Headers to add beside those that are there."),
    set: z.record(headerName, headerValue).optional().describe("Headers to set, replacing those of the same name."),
    remove: z.array(headerName).optional().describe("Names of headers to remove."),
  })
  .meta({ id: "HeaderModifier", description: "Changes headers, in the order add, set, remove." });
