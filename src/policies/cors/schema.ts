import { z } from "zod";
import type { ConfigOf } from "../resolve.ts";
import { duration } from "../shared/field-schemas.ts";

export const schema = z
  .strictObject({
    allowOrigins: z
      .array(z.string().min(1))
      .default([])
      .describe(
        "Origins whose pages may read responses: `scheme://host[:port]`, where the host may hold `*`, as in `https://*.example.com`; `*` alone = all.",
      ),
    allowMethods: z
      .array(z.string().min(1))
      .default([])
      .describe("Methods that those pages may use beside GET, HEAD and POST; `*` = what they ask for."),
    allowHeaders: z
      .array(z.string().min(1))
      .default([])
      .describe("Request headers that those pages may set; `*` = what they ask for."),
    exposeHeaders: z
      .array(z.string().min(1))
      .default([])
      .describe("Response headers that those pages may read; `*` = all, which holds only without credentials."),
    allowCredentials: z
      .boolean()
      .default(false)
      .describe("Whether cookies and credentials go with requests of those pages. Default: no."),
    maxAge: duration
      .optional()
      .describe("How long a browser may keep the answer to a preflight. Default: its own, 5s."),
  })
  .describe(
    "Lets pages of other origins use the gateway (CORS): answers preflights itself, and says on every other response, errors included, who may read it.",
  );

/** What runs. */
export type Cors = ConfigOf<typeof schema>;
