import { REDACTED } from "../src/base/redaction.ts";
import type { RequestRecord } from "../src/recorder/records.ts";
import { literal } from "./filter.ts";

/**
 * An expression for which requests like one are true when they arrive: with its method, host and path. Its route is chosen only later. undefined for connections
 * and sessions, which no expression sees.
 */
export function expressionLike({ method, host, path, kind, cut }: RequestRecord): string | undefined {
  if (method === undefined || kind !== undefined) return undefined;
  // A secret in the path, or the end of a long one, is not recorded.
  const [known = ""] = path.split(REDACTED);
  const isWhole = known === path && cut === undefined;
  return [
    `request.method == ${literal(method)}`,
    // Recorded in lower case and without the port.
    ...(host === undefined ? [] : [`request.host.lowerAscii().startsWith(${literal(host)})`]),
    isWhole ? `request.path == ${literal(path)}` : `request.path.startsWith(${literal(known)})`,
  ].join(" && ");
}
