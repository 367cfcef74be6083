import { LOG_MODULES, parseLogFilter, unknownModules } from "../../base/log-filter.ts";
import { AdminBadRequest } from "../plane/plane.ts";
import { type PlainReply, textReply } from "../server/reply.ts";
import type { AdminCall, AdminRoute } from "./route.ts";

const USAGE = `usage: POST /logging                      show the current log level
       POST /logging?level=<level>        set the global level: off, error, warn, info, debug or trace
       POST /logging?level=<mod>=<level>,<mod>=<level>   set levels of modules
       POST /logging?reset                restore the initial level (can be combined with level)
`;

export const loggingRoutes: readonly AdminRoute[] = [
  {
    path: "/logging",
    methods: ["GET", "POST"],
    parameters: ["level", "reset"],
    summary: "the log filter; POST with level=<directives> or reset changes it",
    handle: logging,
  },
];

function logging({ plane, method, query }: AdminCall): PlainReply {
  const level = query.get("level");
  const reset = query.has("reset");
  if (level === null && !reset) return current(plane.logFilter());
  // GET must be safe: a crawler that follows links must not change anything (RFC 9110 9.2.1).
  if (method === "GET") return textReply(405, "POST is required to change the log level\n", { allow: "POST" });
  try {
    const filter = plane.setLogFilter(level ?? "", reset);
    return current(filter, unknownModules(parseLogFilter(level ?? "")));
  } catch (error) {
    if (error instanceof AdminBadRequest) return textReply(400, `${error.message}\n${USAGE}`);
    throw error;
  }
}

/** `unknown`: modules that write no logs. They are accepted, because the syntax allows any name. */
function current(filter: string, unknown: readonly string[] = []): PlainReply {
  const text = `current log level is ${filter}\n`;
  if (unknown.length === 0) return textReply(200, text);
  return textReply(200, `${text}unknown: ${unknown.join(", ")}; known modules: ${LOG_MODULES.join(", ")}\n`);
}
