import { z } from "zod";
import { defined, type Resolver } from "../contract/resolver.ts";
import { checking, noneOf, setOf } from "../schema/checks.ts";
import type { ConfigOf } from "../schema/resolved.ts";
import { localSource } from "../schema/source.ts";

const FORMS = ["html", "json", "text"] as const;

const entry = z
  .strictObject({
    statuses: z
      .array(z.union([z.int().min(400).max(599), z.enum(["4xx", "5xx"])]))
      .min(1)
      .describe("Statuses whose responses get the page: numbers such as 404, or the classes `4xx` and `5xx`."),
    from: z
      .enum(["gateway", "backend", "both"])
      .default("gateway")
      .describe(
        "Whose responses get the page: the gateway's own (default), responses of backends, or both. Bodies from a policy or from the service that it calls are kept.",
      ),
    html: localSource("the page as HTML")
      .optional()
      .describe("The page as `text/html`. What `{{ … }}` inserts is escaped for text and for attributes in quotes."),
    json: localSource("the page as JSON")
      .optional()
      .describe('The page as `application/json`. `{{ … }}` inserts a JSON value: `{"path": {{ request.path }}}`.'),
    text: localSource("the page as text").optional().describe("The page as `text/plain`."),
  })
  .check(checking((value) => (setOf(value, FORMS).length === 0 ? noneOf(FORMS) : undefined)))
  .meta({ id: "ErrorPage", description: "One page, in one form or several." });

export const schema = z
  .array(entry)
  .min(1)
  .describe(
    "Replaces the bodies of error responses by pages. The first entry with the status and a form that the client accepts (`Accept`) applies; of forms that it accepts equally, `html` comes before `json`, and `json` before `text`. Status and header fields stay, except fields about the replaced body. In a page, `{{ expression }}` inserts the value of CEL over the response, or nothing if it fails. gRPC responses, and responses whose head has been sent, are never replaced. Entries of a route are tried before those of its listener and gateway. Only policies of the gateway phase see requests without a route.",
  );

export type ErrorPages = ConfigOf<typeof schema>;
export type Form = (typeof FORMS)[number];

/** Reads the pages. A file that cannot be read is reported, and its page is absent. */
export function resolve(written: z.output<typeof schema>, resolver: Resolver): ErrorPages {
  return written.map(({ html, json, text, ...others }, i) => {
    const read = (form: Form, source: typeof html): string | undefined =>
      source === undefined ? undefined : resolver.text([i, form], source);
    return defined({ ...others, html: read("html", html), json: read("json", json), text: read("text", text) });
  });
}
