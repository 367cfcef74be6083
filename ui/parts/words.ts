/** How values look on all pages. */
import type { RequestRecord } from "../../src/recorder/records.ts";

/** The class for the color of an outcome: what failed stands out, what was rejected less. */
export function toneOf({ status, error, grpcStatus = 0 }: RequestRecord): "good" | "warn" | "bad" | "quiet" {
  if (status >= 500 || grpcStatus !== 0) return "bad";
  if (status >= 400 || error !== undefined) return "warn";
  return status === 0 ? "quiet" : "good";
}
