import { parseDuration } from "../../base/durations.ts";
import { AdminBadRequest } from "../plane/plane.ts";
import { jsonReply, type PlainReply } from "../server/reply.ts";
import type { AdminCall, AdminRoute } from "./route.ts";

const LIMIT = 50;
const MAX_LIMIT = 10_000;
/** The time that `last` has by default: longer than records last. */
const ALWAYS = Number.POSITIVE_INFINITY;

export const requestRoutes: readonly AdminRoute[] = [
  {
    path: "/requests",
    methods: ["GET"],
    parameters: ["where", "last", "route", "errors", "slow", "limit"],
    summary: "what became of the latest requests; where=CEL last=5m route=NAME errors=true slow=true limit=50",
    handle: find,
  },
  {
    path: "/requests/",
    methods: ["GET"],
    summary: "the request with an id, a trace id, or the number of a record; 404 if it has no record",
    handle: findOne,
  },
];

function find({ plane, query }: AdminCall): PlainReply {
  const text = (name: string): string | undefined => query.get(name) || undefined;
  const last = text("last");
  const time = last === undefined ? ALWAYS : parseDuration(last);
  if (time === undefined) throw new AdminBadRequest(`last=${last} is not a duration such as 5m`);
  return jsonReply(
    plane.requests({
      where: text("where"),
      since: Date.now() - time,
      route: text("route"),
      errors: flag("errors", text("errors")),
      slow: flag("slow", text("slow")),
      limit: limitOf(text("limit")),
    }),
  );
}

function findOne({ plane, rest }: AdminCall): PlainReply {
  const answer = plane.requestsOf(rest);
  // Its times say how far back the request would have been found.
  return { ...jsonReply(answer), status: answer.records.length > 0 ? 200 : 404 };
}

function flag(name: string, value: string | undefined): boolean {
  if (value === undefined || value === "false") return false;
  if (value === "true") return true;
  throw new AdminBadRequest(`${name}=${value} is neither true nor false`);
}

function limitOf(text: string | undefined): number {
  const limit = Number(text ?? LIMIT);
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_LIMIT) return limit;
  throw new AdminBadRequest(`limit=${text} is not a number from 1 to ${MAX_LIMIT}`);
}
