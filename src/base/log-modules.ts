import { covers, type LogFilter } from "./log-filter.ts";

/** The modules that write log lines, for filters. `::` separates levels: `proxy` covers `proxy::match`. */
export const LOG_MODULES = [
  "admin",
  "gateway",
  "policies",
  "proxy",
  "proxy::match",
  "request",
  "telemetry",
  "upstream",
  "upstream::dns",
] as const;

export type LogModule = (typeof LOG_MODULES)[number];

/** Of the modules that a filter names, those that cover no module that writes. */
export function unknownModules(filter: LogFilter): string[] {
  return [...filter.modules.keys()].filter((module) => !LOG_MODULES.some((known) => covers(module, known)));
}
