import { z } from "zod";
import { authorityChange, pathChange } from "../schema/fields.ts";
import type { ConfigOf } from "../schema/resolved.ts";

export const schema = z
  .strictObject({
    authority: authorityChange.optional().describe("The host that the backend receives."),
    path: pathChange.optional().describe("The path that the backend receives."),
  })
  .describe("Rewrites the URL before the request is forwarded.");

/** The configuration at run time. */
export type UrlRewrite = ConfigOf<typeof schema>;
