import { z } from "zod";
import { duration } from "../shared/duration-schema.ts";

export const schema = z
  .strictObject({
    version: z
      .enum(["HTTP/1.1"], { error: "only HTTP/1.1 is available to backends in this version" })
      .optional()
      .describe("Version to speak with the backend."),
    requestTimeout: duration
      .optional()
      .describe("From the call to the response's head; replaces `timeout.backendRequestTimeout`; else 504."),
  })
  .describe("How HTTP is spoken with a backend.");
