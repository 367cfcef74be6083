/** The gateway's own servers. */
export { startAdminServer } from "./admin-server.ts";
export { startInternalServer } from "./internal-server.ts";
export { startReadinessServer } from "./readiness-server.ts";
export type { RunningServer } from "./server/http-server.ts";
export { startStatsServer } from "./stats-server.ts";
