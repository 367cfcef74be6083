import { ROUTE_ORDERS } from "../plane/answers.ts";
import { answerReply, type PlainReply, textReply } from "../server/reply.ts";
import { integer, oneOf } from "./parameters.ts";
import type { AdminCall, AdminRoute } from "./route.ts";

const LIMIT = 100;
const MAX_LIMIT = 1000;
const MAX_PAGE = 1_000_000;

export const routeRoutes: readonly AdminRoute[] = [
  {
    path: "/routes",
    methods: ["GET"],
    parameters: ["search", "listener", "sort", "page", "limit"],
    summary: `routes in the order in which they get requests, with their traffic; search=TEXT listener=KEY sort=requests page=1 limit=${LIMIT}`,
    handle: list,
  },
  {
    path: "/routes/",
    methods: ["GET"],
    summary: "the route with a key, and the policies in effect for it",
    handle: one,
  },
];

async function one({ plane, rest }: AdminCall): Promise<PlainReply> {
  const route = await plane.route(rest);
  if (route !== undefined) return answerReply("/routes/", route);
  return textReply(404, `no route has the key ${JSON.stringify(rest)}; /routes lists them\n`);
}

async function list({ plane, query }: AdminCall): Promise<PlainReply> {
  return answerReply(
    "/routes",
    await plane.routes({
      search: query.get("search") ?? "",
      listener: query.get("listener") || undefined,
      sort: oneOf(query, "sort", ROUTE_ORDERS),
      page: integer(query, "page", 1, MAX_PAGE),
      limit: integer(query, "limit", LIMIT, MAX_LIMIT),
    }),
  );
}
