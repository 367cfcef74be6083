import { RE2JS } from "re2js";
import { z } from "zod";
import { parseDuration } from "../../base/durations.ts";
import { parseListenAddress } from "../../base/listen-address.ts";

/** A Go-style duration; milliseconds after parsing. */
export const duration = z
  .string()
  .transform((text, context) => {
    const parsed = parseDuration(text);
    if (parsed === undefined)
      context.addIssue({
        code: "custom",
        message: `not a duration: ${text}; write a number with a unit, such as 10s, 500ms or 1h30m`,
      });
    return parsed ?? 0;
  })
  .meta({ description: "Duration such as `10s`, `500ms` or `1h30m`.", examples: ["10s", "500ms"] });

export const port = z.int().min(0).max(65535).describe("TCP port; 0 lets the system choose.");

/** `off`, `unix:/path`, `localhost:PORT`, `IP:PORT`. */
export const listenAddress = z
  .string()
  .transform((text, context) => {
    try {
      return parseListenAddress(text);
    } catch (error) {
      context.addIssue({ code: "custom", message: error instanceof Error ? error.message : String(error) });
      return z.NEVER;
    }
  })
  .meta({ description: "`off`, `unix:/path`, `localhost:PORT`, `IP:PORT` or `[IPv6]:PORT`." });

/** A regular expression in RE2 syntax: matching takes linear time. */
export const regex = z
  .string()
  .check((context) => {
    try {
      RE2JS.compile(context.value);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      context.issues.push({
        code: "custom",
        input: context.value,
        message: `not a regular expression in RE2 syntax: ${reason}`,
      });
    }
  })
  .meta({ description: "Regular expression in RE2 syntax; it must match the whole value." });

/** `*`, a host name, or a wildcard such as `*.example.com`. */
export const hostname = z
  .string()
  .regex(
    /^(\*|(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*|\[[0-9a-fA-F:.]+\]|)$/,
    {
      message: "not a host name: write a name, `*.` and a name, or `*`; without scheme, port or path",
    },
  )
  .describe("Host name, wildcard such as `*.example.com`, or `*`.");

/** Names become parts of keys, which are separated by slashes. */
export const objectName = z.string().regex(/^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/, {
  message: "not a name: use letters, digits, `-`, `_` and `.`",
});
