import { answerReply, textReply } from "../server/reply.ts";
import { backendRoutes } from "./backends.ts";
import { certificateRoutes } from "./certificates.ts";
import { configRoutes } from "./config.ts";
import { explainRoutes } from "./explain.ts";
import { exportRoutes } from "./export.ts";
import { expressionRoutes } from "./expression.ts";
import { impactRoutes } from "./impact.ts";
import { loggingRoutes } from "./logging.ts";
import { processRoutes } from "./process.ts";
import { profileRoutes } from "./profiles.ts";
import { requestRoutes } from "./requests.ts";
import type { AdminRoute } from "./route.ts";
import { routeRoutes } from "./routes.ts";
import { sampleRoutes } from "./samples.ts";
import { traceRoutes } from "./trace.ts";
import { uiRoutes } from "./ui.ts";

const indexRoute: AdminRoute = {
  path: "/",
  methods: ["GET"],
  summary: "this list; browsers are sent to the web view",
  handle: ({ plane, headers }) => {
    // A browser asks for a page; other clients take anything.
    if (plane.permits.ui && /\btext\/html\b/.test(headers.accept ?? ""))
      return textReply(302, "", { location: "ui/", vary: "Accept" });
    const rows = ADMIN_ROUTES.map(({ path, methods, summary }) => [methods.join(", "), path, summary] as const);
    const lines = rows.map(([methods, path, summary]) => `${methods.padEnd(9)} ${path.padEnd(21)} ${summary}\n`);
    return textReply(200, `tracegate ${plane.version} admin server\n\n${lines.join("")}`);
  },
};

const overviewRoute: AdminRoute = {
  path: "/overview",
  methods: ["GET"],
  summary: "whether all is well: configuration, workers, listeners, traffic of the last 15 minutes, groups of failures",
  handle: ({ plane }) => answerReply("/overview", plane.overview()),
};

/** Every endpoint of the admin server, in the order of the index. */
export const ADMIN_ROUTES: readonly AdminRoute[] = [
  indexRoute,
  overviewRoute,
  ...routeRoutes,
  ...configRoutes,
  ...backendRoutes,
  ...certificateRoutes,
  ...traceRoutes,
  ...explainRoutes,
  ...exportRoutes,
  ...expressionRoutes,
  ...impactRoutes,
  ...requestRoutes,
  ...sampleRoutes,
  ...loggingRoutes,
  ...processRoutes,
  ...profileRoutes,
  ...uiRoutes,
];
