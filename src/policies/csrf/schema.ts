import { z } from "zod";
import type { ConfigOf } from "../schema/resolved.ts";

export const schema = z
  .strictObject({
    additionalOrigins: z
      .array(z.string().min(1))
      .default([])
      .describe("Other origins whose pages may send such requests: `scheme://host[:port]`, compared exactly."),
  })
  .describe(
    "Rejects cross-site requests from browsers (CSRF) with methods that change state, based on `Sec-Fetch-Site` and `Origin`. GET, HEAD and OPTIONS pass. Browsers send `Sec-Fetch-Site` only over https; over http a page can hide its origin (`Origin: null`), which is rejected.",
  );

/** What runs. */
export type Csrf = ConfigOf<typeof schema>;
