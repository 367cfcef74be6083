import { LOG_MODULES, parseLogFilter, unknownModules } from "../../base/log-filter.ts";
import { JSON_TYPE } from "../plane/answers.ts";
import type { LogLevels } from "../plane/log-levels.ts";
import { AdminBadRequest } from "../plane/plane.ts";
import { answerReply, type PlainReply, textReply } from "../server/reply.ts";
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
    summary:
      "the log filter; POST with level=<directives> or reset changes it; JSON with the level of each module on request",
    handle: logging,
  },
];

/** A line of text, or the levels of all modules to a program that asks for JSON. */
function logging({ plane, method, query, headers }: AdminCall): PlainReply {
  const current = headers.accept === JSON_TYPE ? levelsReply : lineReply;
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

function levelsReply(text: string): PlainReply {
  const filter = parseLogFilter(text);
  const names = [...new Set([...LOG_MODULES, ...filter.modules.keys()])];
  const levels: LogLevels = {
    filters: [text],
    level: filter.global,
    modules: names.map((name) => ({ name, level: filter.levelOf(name), own: filter.modules.has(name) })),
  };
  return answerReply("/logging", levels);
}

/** `unknown`: modules that write no logs. They are accepted, because the syntax allows any name. */
function lineReply(filter: string, unknown: readonly string[] = []): PlainReply {
  const text = `current log level is ${filter}\n`;
  if (unknown.length === 0) return textReply(200, text);
  return textReply(200, `${text}unknown: ${unknown.join(", ")}; known modules: ${LOG_MODULES.join(", ")}\n`);
}
