import { z } from "zod";
import type { ConfigOf } from "../resolve.ts";

export const schema = z
  .strictObject({
    additionalOrigins: z
      .array(z.string().min(1))
      .default([])
      .describe("Other origins whose pages may send such requests: `scheme://host[:port]`."),
  })
  .describe(
    "Refuses requests that change something and that a page of another site made a browser send (CSRF): those whose `Sec-Fetch-Site` or `Origin` says so. GET, HEAD and OPTIONS pass. Browsers send `Sec-Fetch-Site` over https only; over http a page can hide its origin (`Origin: null`), which is refused.",
  );

/** What runs. */
export type Csrf = ConfigOf<typeof schema>;
