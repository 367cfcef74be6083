import { z } from "zod";
import { ms } from "../../base/durations.ts";
import type { ConfigOf } from "../resolve.ts";
import { duration } from "../shared/field-schemas.ts";

export const schema = z
  .strictObject({
    attempts: z.int().min(1).max(255).default(1).describe("Further attempts after the first. Default: 1."),
    backoff: duration
      .default(ms(0))
      .describe("Time before each further attempt; a random half of it is added or taken away. Default: none."),
    codes: z.array(z.int().min(100).max(599)).describe("Statuses of responses that are tried again; may be empty."),
    precondition: z
      .string()
      .optional()
      .describe(
        'CEL over the request; retries only when it is true, not when it fails. To keep retries to idempotent methods: `request.method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]`. Without one that names `request.method`, every method is repeated, but not POST, PATCH and others that are not idempotent after a timeout, because the backend may still be working on them.',
      ),
    condition: z
      .string()
      .optional()
      .describe("CEL over request and response; a response for which it is true is tried again."),
  })
  .describe(
    "Tries failed calls again: on these statuses, and when connecting fails or the backend breaks off or does not answer in time. Bodies up to 64 KiB are kept for it.",
  );

/** What runs. */
export type Retry = ConfigOf<typeof schema>;
