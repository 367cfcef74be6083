import { answerReply, type PlainReply } from "../server/reply.ts";
import { duration, expressionText, flag, integer, time } from "./parameters.ts";
import type { AdminCall, AdminRoute } from "./route.ts";

const LIMIT = 50;
const MAX_LIMIT = 10_000;

export const requestRoutes: readonly AdminRoute[] = [
  {
    path: "/requests",
    methods: ["GET"],
    parameters: ["where", "last", "since", "route", "errors", "slow", "limit"],
    summary: "records of the latest requests; where=CEL last=5m since=TIME route=NAME errors=true slow=true limit=50",
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
  const last = duration(query, "last");
  return answerReply(
    "/requests",
    plane.requests({
      where: expressionText(query, "where"),
      since: Math.max(time(query, "since") ?? 0, last === undefined ? 0 : Date.now() - last),
      route: query.get("route") || undefined,
      errors: flag(query, "errors"),
      slow: flag(query, "slow"),
      limit: integer(query, "limit", LIMIT, MAX_LIMIT),
    }),
  );
}

function findOne({ plane, rest }: AdminCall): PlainReply {
  const answer = plane.requestsOf(rest);
  // Its times say how far back the request would have been found.
  return { ...answerReply("/requests/", answer), status: answer.records.length > 0 ? 200 : 404 };
}
