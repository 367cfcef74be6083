import { jsonReply } from "../server/reply.ts";
import type { AdminRoute } from "./route.ts";

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
    handle: ({ plane }) => jsonReply(plane.configStatus()),
  },
];
