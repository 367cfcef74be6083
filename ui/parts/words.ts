/** How values look on all pages. */
import type { EndpointView } from "../../src/admin/plane/backends.ts";
import { SERVER_FAILURES } from "../../src/base/grpc-codes.ts";
import type { RequestRecord } from "../../src/recorder/records.ts";

/** The class for the color of an outcome: what failed stands out, what was rejected less. */
export function toneOf({ status, error, grpcStatus = 0 }: RequestRecord): "good" | "warn" | "bad" | "quiet" {
  if (status >= 500 || SERVER_FAILURES.has(grpcStatus)) return "bad";
  if (status >= 400 || grpcStatus !== 0 || error !== undefined) return "warn";
  return status === 0 ? "quiet" : "good";
}

/** The class for the color of an endpoint's state. */
export function stateTone(state: EndpointView["state"]): "good" | "warn" | "bad" | "quiet" {
  switch (state) {
    case "healthy":
      return "good";
    case "evicted":
    case "pending":
      return "warn";
    case "unhealthy":
    case "unresolved":
    case "notReady":
      return "bad";
    case "unused":
      return "quiet";
  }
}
