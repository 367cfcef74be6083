import { z } from "zod";
import { duration } from "../schema/fields.ts";
import type { ConfigOf } from "../schema/resolved.ts";

export const schema = z
  .strictObject({
    allowOrigins: z
      .array(z.string().min(1))
      .default([])
      .describe(
        "Origins whose pages may read responses: `scheme://host[:port]`. The host may contain `*`, as in `https://*.example.com`; `*` alone allows all origins.",
      ),
    allowMethods: z
      .array(z.string().min(1))
      .default([])
      .describe(
        "Methods that those pages may use besides GET, HEAD and POST; `*` = any method that a preflight requests.",
      ),
    allowHeaders: z
      .array(z.string().min(1))
      .default([])
      .describe("Request headers that those pages may set; `*` = any header that a preflight requests."),
    exposeHeaders: z
      .array(z.string().min(1))
      .default([])
      .describe("Response headers that those pages may read; `*` = all, only without credentials."),
    allowCredentials: z
      .boolean()
      .default(false)
      .describe("Whether those pages may send cookies and credentials. Default: false."),
    maxAge: duration
      .optional()
      .describe("How long browsers may cache the response to a preflight. Default: the browser's default, 5s."),
  })
  .describe(
    "Allows pages of other origins to call the gateway (CORS): responds to preflights and adds CORS headers to all other responses, including errors.",
  );

/** What runs. */
export type Cors = ConfigOf<typeof schema>;
