import { z } from "zod";
import { condition } from "../shared/cel-schema.ts";
import { duration } from "../shared/duration-schema.ts";

const share = z.number().min(0).max(1);

export const schema = z
  .strictObject({
    unhealthyExpression: condition("response")
      .optional()
      .describe(
        "CEL over the request and the response head, with `response.grpcStatus` from head or trailers; true counts the call as failed. Default, also when the expression fails: a status of 5xx or a gRPC status other than 0. A call without a response always counts as failed.",
      ),
    eviction: z
      .strictObject({
        duration: duration
          .optional()
          .describe(
            "How long an endpoint gets no requests; the second time in a row twice as long, and so on. Default: what a 429 says in `Retry-After` or a header like it, else the backoff of `retry`, else 3 s.",
          ),
        restoreHealth: share
          .optional()
          .describe("Health of the endpoint when it comes back, 0 to 1. Default: what it was."),
        consecutiveFailures: z
          .int()
          .min(1)
          .optional()
          .describe("Evicts at that many failures in a row. Neither this nor `healthThreshold`: at every failure."),
        healthThreshold: share
          .optional()
          .describe("Evicts at a failure when the health was below this before; 0 to 1."),
      })
      .optional()
      .describe("When failures take an endpoint out of the choice. Default: they only lower its health."),
  })
  .describe(
    "What counts as a failed call, and when an endpoint that fails gets no requests for a while. When all endpoints are evicted they are used all the same. Each worker thread counts the calls that it has made itself; what one evicts, the others do not use either.",
  );
