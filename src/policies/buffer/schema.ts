import { z } from "zod";

const side = (what: string, status: number) =>
  z
    .strictObject({
      maxBytes: z.int().min(0).optional().describe("Longest body; default: `frontendPolicies.http.maxBufferSize`."),
      failureMode: z
        .enum(["failClosed", "failOpen"])
        .default("failClosed")
        .describe(`What becomes of longer ones: ${status} without a body, or they flow on after that many bytes.`),
    })
    .describe(`Bodies of ${what}.`);

export const schema = z
  .strictObject({
    request: side("requests", 413).optional(),
    response: side("responses", 502).optional(),
  })
  .describe("Reads bodies to their end before anything of them goes on, so that nobody waits for a slow sender.");
