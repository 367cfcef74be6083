import { z } from "zod";
import { ms } from "../../base/durations.ts";
import { GRPC_CODE_NAMES } from "../../base/grpc-codes.ts";
import { condition } from "../schema/cel.ts";
import { duration } from "../schema/fields.ts";
import type { ConfigOf } from "../schema/resolved.ts";

export const schema = z
  .strictObject({
    attempts: z.int().min(1).max(255).default(1).describe("Further attempts after the first. Default: 1."),
    backoff: duration.default(ms(0)).describe("Time before each retry, varied at random by up to half. Default: none."),
    codes: z.array(z.int().min(100).max(599)).describe("Response statuses to retry; may be empty."),
    grpcCodes: z
      .array(z.enum(GRPC_CODE_NAMES))
      .optional()
      .describe(
        "gRPC statuses to retry, such as `[UNAVAILABLE, RESOURCE_EXHAUSTED]`. Calls are retried if they fail before their first message, with the status in the head of the response (Trailers-Only) or in its trailers; for the latter, the head waits for the first message once the client has sent everything. `grpc-retry-pushback-ms` of the backend takes precedence over `backoff`; if it is negative, there is no retry. Default: none.",
      ),
    precondition: condition("request", { true: "allows all retries", false: "prevents all retries" })
      .optional()
      .describe(
        'CEL over the request; retries only if it is true, not if it fails. To limit retries to idempotent methods: `request.method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]`. Without a precondition that names `request.method`, every method is retried, except that after a timeout methods that are not idempotent, such as POST and PATCH, are not: the backend may still be processing the request.',
      ),
    condition: condition("response", { true: "retries after every response", false: "adds no retries" })
      .optional()
      .describe("CEL over the request and the head of the response; if true, the request is retried."),
    otherBackends: z
      .boolean()
      .optional()
      .describe(
        "Each retry goes to another backend of the route, chosen by weight among those that the request has not tried; backends of weight 0 are left out. When all have been tried, further retries stay with the last one. `http.maxRetries` and `retryBudget` of the backend that gets the retry apply. Default: false, retries stay with the backend that was chosen, at another of its endpoints if it has one.",
      ),
  })
  .describe(
    "Retries attempts that fail: on the given statuses, on connection failures, if the backend resets the connection, and on timeouts. Bodies up to 64 KiB are kept for retries. A retry avoids endpoints that have failed if the backend has others. A request that gets no connection tries other endpoints of its backend even without this policy; this does not count as a retry.",
  );

/** The configuration at run time. */
export type Retry = ConfigOf<typeof schema>;
