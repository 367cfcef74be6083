import { z } from "zod";
import type { ConfigOf } from "../resolve.ts";
import { authorityChange, pathChange } from "../shared/field-schemas.ts";

export const schema = z
  .strictObject({
    scheme: z.enum(["http", "https"]).optional().describe("Scheme of the new URL; default: that of the request."),
    authority: authorityChange.optional().describe("Host and port of the new URL; default: those of the request."),
    path: pathChange.optional().describe("Path of the new URL; default: that of the request. The query stays."),
    status: z.literal([301, 302, 303, 307, 308]).optional().describe("Status of the redirect; default 302."),
  })
  .describe("Responds with a redirect instead of calling a backend.");

/** What runs. */
export type RequestRedirect = ConfigOf<typeof schema>;
