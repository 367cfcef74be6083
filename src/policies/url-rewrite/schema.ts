import { z } from "zod";
import type { ConfigOf } from "../resolve.ts";
import { authorityChange, pathChange } from "../shared/field-schemas.ts";

export const schema = z
  .strictObject({
    authority: authorityChange.optional().describe("What to ask the backend for as host."),
    path: pathChange.optional().describe("What to ask the backend for as path."),
  })
  .describe("Changes the URL before the request goes to the backend.");

/** What runs. */
export type UrlRewrite = ConfigOf<typeof schema>;
