/** Lines of the access log, of real requests and connections and of rehearsed ones, so that they can be compared. */
import { formatOrigin } from "../../../src/base/origin.ts";
import { type AccessRecord, recordFields } from "../../../src/telemetry/access-record.ts";

/** The line that would be written. */
export function rehearsedLine(record: Partial<AccessRecord> | undefined): Readonly<Record<string, unknown>> {
  return lineOf(recordFields(withOrigin((record ?? {}) as AccessRecord)));
}

/** An explanation has the origin of an error as data, the line of the access log as a part of its text. */
function withOrigin(record: AccessRecord): AccessRecord {
  const { error, origin } = record;
  return error === undefined || origin === undefined
    ? record
    : { ...record, error: `${error}, at ${formatOrigin(origin)}` };
}

/** Why calls really fail, and what stands there if it is assumed. */
const CAUSES = [
  ["gRPC status 14: out of order", "the service is assumed to fail"],
  [/connect ECONNREFUSED [\d.:]+/, "connection refused: that is assumed"],
  ["unable to get local issuer certificate; add its CA to backendTLS.root", "connection refused: that is assumed"],
] as const;

/** The line of the access log without what differs from run to run: listener, route, endpoint, status, error, lengths and more. */
export function lineOf(line: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const {
    time,
    level,
    scope,
    message,
    "request.id": _id,
    "src.addr": _client,
    "bytes.received": _bytes,
    duration,
    ...others
  } = line;
  const text = CAUSES.reduce((text, [cause, assumed]) => text.replace(cause, assumed), JSON.stringify(others));
  return JSON.parse(text) as Readonly<Record<string, unknown>>;
}
