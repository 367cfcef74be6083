import { AdminForbidden } from "../plane/plane.ts";
import { jsonReply, textReply } from "../server/reply.ts";
import type { AdminRoute } from "./route.ts";

export const processRoutes: readonly AdminRoute[] = [
  {
    path: "/memory",
    methods: ["GET"],
    summary: "memory of the process, its threads and its container",
    handle: async ({ plane }) => jsonReply(await plane.memory()),
  },
  {
    path: "/debug/tasks",
    methods: ["GET"],
    summary: "requests and connections in progress",
    handle: async ({ plane }) => jsonReply(await plane.tasks()),
  },
  {
    path: "/quitquitquit",
    methods: ["POST"],
    summary: "begins the graceful shutdown",
    // After the response: this server ends with the process.
    handle: ({ plane }) => {
      if (!plane.permits.quit)
        throw new AdminForbidden(
          "config.admin.quit does not allow shutting this gateway down through its admin API; send it SIGTERM",
        );
      return { ...textReply(200, "shutdown now\n"), after: () => plane.shutdown() };
    },
  },
];
