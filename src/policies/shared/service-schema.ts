import { z } from "zod";
import { ms } from "../../base/durations.ts";
import { duration } from "./duration-schema.ts";

/** Fields of policies that ask a service; exactly one of the first three, which is checked where targets are looked up. */
export const service = {
  host: z.string().optional().describe("`host:port`, `ip:port` or `unix:/path` of the service."),
  service: z
    .strictObject({
      name: z
        .string()
        .regex(/^[^/]+\/[^/]+$/, { message: "write namespace/hostname" })
        .describe("`namespace/hostname`"),
      port: z.int().min(1).max(65535).describe("A port of the service."),
    })
    .optional()
    .describe("An entry of `services`."),
  backend: z.string().optional().describe("A named backend: `/name`; the policies of it that callouts can have apply."),
  timeout: duration.default(ms(2000)).describe("How long an answer may take. Default: 2s."),
};
