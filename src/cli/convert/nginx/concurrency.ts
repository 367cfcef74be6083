/** `limit_conn`: despite its name, nginx counts the requests in progress of connections, and each stream of HTTP/2 for itself. */
import type { Json } from "../converted.ts";
import type { Directive } from "./parse.ts";
import type { Reading } from "./reading.ts";
import { all, one, type Scope, valuesOf } from "./scope.ts";
import { celOf } from "./variables.ts";

/** What counts for the whole server anyway. */
const SHARED_BY_ALL = new Set(["$server_name", "$server_port", "$host"]);

/** The items of `concurrencyLimit`. */
export function concurrencyLimits(reading: Reading, scope: Scope): readonly Json[] {
  const found = all(scope, "limit_conn");
  const limits = found.flatMap((each) => limitOf(reading, each));
  const [first] = found;
  if (first === undefined || limits.length === 0) return limits;
  const status = one(scope, "limit_conn_status")?.args[0] ?? "503";
  if (status !== "429") reading.find("warning", first, `requests over the limit get 429, not ${status}`);
  reading.find(
    "warning",
    first,
    "each route counts its own requests; in nginx, all that name the zone count together",
    "move concurrencyLimit to the policies of the listener if they should",
  );
  return limits;
}

function limitOf(reading: Reading, at: Directive): readonly Json[] {
  const [zone = "", number = ""] = at.args;
  const defined = valuesOf(reading.http, "limit_conn_zone").find(({ args }) =>
    args.some((each) => each.startsWith(`zone=${zone}:`)),
  );
  const variable = defined?.args[0] ?? "";
  const maxRequests = Number(number);
  if (defined !== undefined && maxRequests > 0 && SHARED_BY_ALL.has(variable)) return [{ maxRequests }];
  const key = defined === undefined ? undefined : celOf(variable, { serverName: "" });
  if (key !== undefined && maxRequests > 0) return [{ maxRequests, key }];
  reading.find("error", at, `the limit of zone ${zone} is left out`, "write it as concurrencyLimit, with a key in CEL");
  return [];
}
