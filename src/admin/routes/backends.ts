import { answerReply, type PlainReply, textReply } from "../server/reply.ts";
import { flag, integer } from "./parameters.ts";
import type { AdminCall, AdminRoute } from "./route.ts";

const LIMIT = 1000;
const MAX_LIMIT = 10_000;

export const backendRoutes: readonly AdminRoute[] = [
  {
    path: "/backends",
    methods: ["GET"],
    parameters: ["find", "failing", "limit"],
    summary: "backends with the health, load and connections of their endpoints; find=TEXT failing=true limit=1000",
    handle: async ({ plane, query }) =>
      answerReply(
        "/backends",
        await plane.backends({
          find: query.get("find") || undefined,
          failing: flag(query, "failing"),
          limit: integer(query, "limit", LIMIT, MAX_LIMIT),
        }),
      ),
  },
  { path: "/backends/", methods: ["GET"], summary: "the backend with a key, such as %2Fapi", handle: one },
  {
    path: "/probe/",
    methods: ["POST"],
    summary: "probes the endpoints of the backend with a key: by its active health check, or with a connection",
    handle: probe,
  },
];

async function one({ plane, rest }: AdminCall): Promise<PlainReply> {
  const backend = await plane.backend(rest);
  return backend === undefined ? unknown(rest) : answerReply("/backends/", backend);
}

async function probe({ plane, rest }: AdminCall): Promise<PlainReply> {
  const answer = await plane.probe(rest);
  return answer === undefined ? unknown(rest) : answerReply("/probe/", answer);
}

function unknown(key: string): PlainReply {
  return textReply(404, `no backend has the key ${JSON.stringify(key)}; /backends lists them\n`);
}
