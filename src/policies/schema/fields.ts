/**
 * Schemas of fields that several kinds of policies and other parts of the configuration have in common. They load zod, so workers
 * import only types from here.
 */
import { z } from "zod";
import { intendedDuration, ms, parseDuration } from "../../base/durations.ts";
import { intendedSizes, parseSize, SIZE_PATTERN } from "../../base/sizes.ts";
import type { ConfigOf } from "./resolved.ts";

/** A Go-style duration, as in the Gateway API; milliseconds after parsing. */
export const duration = z
  .string({
    error: ({ input }) => `a duration with a unit, such as ${typeof input === "number" && input > 0 ? input : 10}s`,
  })
  .transform((text, context) => {
    const parsed = parseDuration(text);
    if (parsed === undefined) {
      const form = intendedDuration(text) ?? "a number with a unit, such as 10s, 500ms or 1h30m";
      context.addIssue({ code: "custom", message: `not a duration: ${text}; write ${form}` });
    }
    return parsed ?? ms(0);
  })
  .meta({ title: "duration", description: "Duration such as `10s`, `500ms` or `1h30m`." });

/** Limits of a size, in bytes. */
interface SizeLimits {
  readonly min?: number;
  readonly max?: number;
}

/** A size, written as a number of bytes or with a unit, such as `10MB`; bytes after parsing. For every field that counts bytes. */
export function size({ min = 0, max = Number.MAX_SAFE_INTEGER }: SizeLimits = {}) {
  const written = z
    .string({ error: "a size with a unit, such as 10MB or 4KiB" })
    .transform((text, context) => {
      const bytes = parseSize(text);
      if (bytes === undefined) {
        const [form = "a number of bytes, or one with a unit, such as 10MB or 4KiB", ...others] = intendedSizes(text);
        context.addIssue({ code: "custom", message: `not a size: ${text}; write ${[form, ...others].join(" or ")}` });
      } else if (bytes < min)
        context.addIssue({ code: "too_small", origin: "int", minimum: min, inclusive: true, input: text });
      else if (bytes > max)
        context.addIssue({ code: "too_big", origin: "int", maximum: max, inclusive: true, input: text });
      return bytes ?? 0;
    })
    .meta({ pattern: SIZE_PATTERN.source });
  return z.union([z.int().min(min).max(max), written]).meta({ title: "size" });
}

/** Names an entry of `services` and one of its ports. */
export const serviceReference = z.strictObject({
  name: z
    .string()
    .regex(/^[^/]+\/[^/]+$/, { message: "write namespace/hostname" })
    .describe("`namespace/hostname`"),
  port: z.int().min(1).max(65535).describe("Port of the service."),
});

/** Fields that name a service. Exactly one of the first three; checked where targets are looked up, which reports the path. */
export const service = {
  host: z.string().optional().describe("`host:port`, `ip:port` or `unix:/path` of the service."),
  service: serviceReference.optional().describe("An entry of `services`."),
  backend: z
    .string()
    .optional()
    .describe("A named backend: `/name`; those of its policies that callouts support apply."),
  timeout: duration.default(ms(2000)).describe("Timeout of the call. Default: 2s."),
};

/** `authority` of a rewrite or redirect (docs/configuration.md#authoritychange). Exactly one change, so a union. */
export const authorityChange = z
  .union([
    z.literal(["auto", "none"]).describe("`auto`: the backend's host name; `none`: unchanged."),
    z.strictObject({ full: z.string().min(1).describe("New authority, optionally with a port.") }),
    z.strictObject({ host: z.string().min(1).describe("New host, without port.") }),
    z.strictObject({ port: z.int().min(1).max(65535).describe("New port; the host is kept.") }),
  ])
  .meta({ id: "AuthorityChange", description: "A new host, port or both." });

/** `path` of a rewrite or redirect (Gateway API HTTPPathModifier). */
export const pathChange = z
  .union([
    z.strictObject({ full: z.string().describe("Replaces the whole path.") }),
    z.strictObject({ prefix: z.string().describe("Replaces the prefix that the route matched.") }),
  ])
  .meta({ id: "PathChange", description: "A new path; the query stays." });

export type AuthorityChange = z.output<typeof authorityChange>;
export type PathChange = z.output<typeof pathChange>;

const headerName = z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, { message: "not a header name" });
const headerValue = z
  .string()
  // Any character but controls, of which only a tab is allowed (RFC 9110, section 5.5). This becomes a pattern of the JSON
  // Schema, and not all validators know \P{Cc}.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what the pattern excludes.
  .regex(/^[^\x00-\x08\x0a-\x1f\x7f-\x9f]*$/, {
    message: "not a header value: line breaks and control characters are not allowed",
  });

/** `requestHeaderModifier` and `responseHeaderModifier` (docs/configuration.md#headermodifier). */
export const headerModifier = z
  .strictObject({
    add: z
      .record(headerName, headerValue)
      .optional()
      .describe("Headers to add; existing fields of the same name stay."),
    set: z.record(headerName, headerValue).optional().describe("Headers to set, replacing those of the same name."),
    remove: z.array(headerName).optional().describe("Names of headers to remove."),
  })
  .meta({ id: "HeaderModifier", description: "Changes headers, in the order add, set, remove." });

export type HeaderModifier = ConfigOf<typeof headerModifier>;
