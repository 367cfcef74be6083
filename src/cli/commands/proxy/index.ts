import type { Group } from "../../runner/define-command.ts";
import type { TraceView } from "../../trace/view.ts";
import { backends } from "./backends.ts";
import { certs } from "./certs.ts";
import { configAll, configBackends, configListeners, configPolicies, configRoutes } from "./config.ts";
import { evaluate } from "./eval.ts";
import { explain } from "./explain.ts";
import { impact } from "./impact.ts";
import { log } from "./log.ts";
import { profileCpu, profileHeap } from "./profile.ts";
import { recent } from "./recent.ts";
import { routes } from "./routes.ts";
import { status } from "./status.ts";
import { traceGroup } from "./trace/index.ts";
import { ui } from "./ui.ts";

const config: Group = {
  name: "config",
  aliases: ["c", "cfg"],
  summary: "Show the configuration of a proxy",
  commands: [configAll, configRoutes, configListeners, configPolicies, configBackends],
};

const profile: Group = {
  name: "profile",
  summary: "Record a CPU (default) or heap profile of a proxy",
  commands: [profileCpu, profileHeap],
  fallback: "cpu",
};

export const proxyGroup = (loadTraceView: () => Promise<TraceView>): Group => ({
  name: "proxy",
  summary: "Inspect a proxy",
  commands: [
    traceGroup(loadTraceView),
    explain,
    evaluate,
    recent,
    impact,
    ui,
    status,
    routes,
    backends,
    certs,
    config,
    log,
    profile,
  ],
});
