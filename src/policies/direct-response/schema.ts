import { z } from "zod";

export const schema = z
  .strictObject({
    status: z.int().min(200).max(599).describe("Status of the response."),
    body: z.string().optional().describe("Body of the response; default: empty. No content-type is added."),
  })
  .describe("Answers with a fixed response instead of calling a backend.");
