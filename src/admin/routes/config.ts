import { answerReply, jsonReply, type PlainReply } from "../server/reply.ts";
import { integer } from "./parameters.ts";
import type { AdminCall, AdminRoute } from "./route.ts";

const LIMIT = 100;
const MAX_LIMIT = 1000;
const MAX_PAGE = 1_000_000;

export const configRoutes: readonly AdminRoute[] = [
  {
    path: "/config_dump",
    methods: ["GET"],
    summary: "the configuration in effect",
    handle: async ({ plane }) => jsonReply(await plane.configDump()),
  },
  {
    path: "/config/status",
    methods: ["GET"],
    summary: "generation in effect, and why the newest configuration was rejected",
    handle: ({ plane }) => answerReply("/config/status", plane.configStatus()),
  },
  {
    path: "/config/difference",
    methods: ["GET"],
    summary: "how the configuration file differs from what is in effect, without secrets",
    handle: async ({ plane }) => answerReply("/config/difference", await plane.configDifference()),
  },
  {
    path: "/config/parts",
    methods: ["GET"],
    parameters: ["search", "policy", "at", "page", "limit"],
    summary: `parts of the configuration in effect, one of them in full; search=TEXT policy=KIND at=gateway.yaml:31 page=1 limit=${LIMIT}`,
    handle: parts,
  },
];

async function parts({ plane, query }: AdminCall): Promise<PlainReply> {
  return answerReply(
    "/config/parts",
    await plane.configParts({
      search: query.get("search") ?? "",
      policy: query.get("policy") || undefined,
      at: query.get("at") || undefined,
      page: query.has("page") ? integer(query, "page", 1, MAX_PAGE) : undefined,
      limit: integer(query, "limit", LIMIT, MAX_LIMIT),
    }),
  );
}
