import { z } from "zod";
import { size } from "../schema/fields.ts";
import type { ConfigOf } from "../schema/resolved.ts";

/** `status`: the response to a body over the limit. */
const side = (what: string, status: number) =>
  z
    .strictObject({
      maxBytes: size()
        .optional()
        .describe("Maximum bytes of the body; default: `frontendPolicies.http.maxBufferSize`."),
      failureMode: z
        .enum(["failClosed", "failOpen"])
        .default("failClosed")
        .describe(
          `How to handle a longer body: failClosed responds with ${status} and an empty body, failOpen streams the rest without buffering it.`,
        ),
    })
    .describe(`Buffers the bodies of ${what}.`);

export const schema = z
  .strictObject({
    request: side("requests", 413).optional(),
    response: side("responses", 502).optional(),
  })
  .describe("Buffers a whole body before forwarding it, so a slow sender does not occupy the receiver.");

export type Buffering = ConfigOf<typeof schema>;
export type BufferedSide = NonNullable<Buffering["request"]>;
