import { z } from "zod";
import type { ContentCoding } from "../contract/types.ts";
import { size } from "../schema/fields.ts";
import type { ConfigOf } from "../schema/resolved.ts";

const CODINGS = ["zstd", "br", "gzip"] as const satisfies readonly ContentCoding[];

/** Text, code, data and fonts that are not compressed themselves. */
const CONTENT_TYPES = [
  "text/html",
  "text/css",
  "text/plain",
  "text/xml",
  "text/csv",
  "text/markdown",
  "text/javascript",
  "application/javascript",
  "application/json",
  "application/*+json",
  "application/xml",
  "application/*+xml",
  "application/wasm",
  "image/svg+xml",
  "font/otf",
  "font/ttf",
] as const;

const NAME = "[A-Za-z0-9!#$&^_.+-]+";
/** `type/subtype`, `type/*` or `type/*+suffix`. */
const CONTENT_TYPE = new RegExp(`^${NAME}/(?:${NAME}|\\*(?:\\+${NAME})?)$`);

export const schema = z
  .strictObject({
    encodings: z
      .array(z.enum(CODINGS))
      .min(1)
      .refine((names) => new Set(names).size === names.length, { message: "an encoding is listed twice; list it once" })
      .default([...CODINGS])
      .describe(
        "Encodings to use, the preferred first. The one with the highest weight in the client's `Accept-Encoding` is chosen; the order decides between equal weights. Default: `[zstd, br, gzip]`.",
      ),
    contentTypes: z
      .array(
        z.string().regex(CONTENT_TYPE, {
          message: "is not a media type; write type/subtype, type/* or type/*+suffix, without parameters",
        }),
      )
      .min(1)
      .default([...CONTENT_TYPES])
      .describe(
        "Media types of the responses to compress: `type/subtype`, `type/*` or `type/*+suffix`. `text/event-stream` must be listed by its full name; gRPC is never compressed. Default: text, scripts, JSON, XML, SVG, WebAssembly and font formats without built-in compression.",
      ),
    minSize: size()
      .prefault("1KiB")
      .describe("Responses with a shorter `Content-Length` are not compressed. In bytes."),
    levels: z
      .strictObject({
        zstd: z.int().min(1).max(6).default(3).describe("1 to 6."),
        br: z.int().min(0).max(6).default(4).describe("0 to 6."),
        gzip: z.int().min(1).max(9).default(5).describe("1 to 9."),
      })
      .prefault({})
      .describe(
        "How hard to compress: higher levels yield fewer bytes for more CPU time and memory. Higher levels than these suit files that are compressed once, not responses.",
      ),
  })
  .describe(
    "Compresses responses for clients that accept it (RFC 9110, section 12.5.3). Bodies stream: bytes from the backend are sent on without waiting for more, unless the whole body is at most 32 KiB. Responses that are encoded already or have `Cache-Control: no-transform`, a digest or `Content-Range`, and statuses without a whole body (204, 206, 304), are not compressed. A compressed response has `Vary: accept-encoding`, a weak `ETag`, and neither the original `Content-Length` nor `Accept-Ranges`. The length of a compressed response reveals something about its content: if a response contains both a secret, such as a CSRF token, and text that the request chose, an attacker who can make a browser send requests and see the lengths can guess the secret (BREACH). Leave such routes uncompressed, or mask the secret differently in each response.",
  );

export type Compression = ConfigOf<typeof schema>;
