import { parseDuration } from "../../base/durations.ts";
import { AdminBadRequest, AdminNotFound } from "../plane/plane.ts";
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
    summary: "the request with an id, a trace id, or the number of a record",
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
  if (answer.records.length > 0) return jsonReply(answer);
  const { completeSince, keptSince } = answer;
  const reach =
    keptSince === undefined
      ? "there are no records yet"
      : completeSince === undefined
        ? `records reach back to ${keptSince}`
        : `records of all requests reach back to ${completeSince}, those of failed and slow ones to ${keptSince}`;
  throw new AdminNotFound(`no record of the request ${JSON.stringify(rest)}: ${reach}`);
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
