import { z } from "zod";
import { authorityChange, pathChange } from "../schema/fields.ts";
import type { ConfigOf } from "../schema/resolved.ts";

export const schema = z
  .strictObject({
    scheme: z.enum(["http", "https"]).optional().describe("Scheme of the new URL. Default: the request's."),
    authority: authorityChange.optional().describe("Host and port of the new URL. Default: the request's."),
    path: pathChange.optional().describe("Path of the new URL. Default: the request's. The query is kept."),
    status: z.literal([301, 302, 303, 307, 308]).optional().describe("Status code of the redirect. Default: 302."),
  })
  .describe("Responds with a redirect instead of calling a backend.");

/** The configuration at run time. */
export type RequestRedirect = ConfigOf<typeof schema>;
