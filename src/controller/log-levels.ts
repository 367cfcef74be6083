import { type PlainReply, textReply } from "../admin/server/reply.ts";
import type { LogOutput } from "../base/log.ts";
import { CONTROLLER_COMPONENTS, LOG_LEVELS, type LogFilter, parseLogFilter } from "../base/log-filter.ts";

/** `off` is not one of them: the controller always reports errors. */
const LEVELS = ["error", "warn", "info", "debug", "trace"] as const;

/** Every component has its own level. @throws Error for a level that does not exist */
export function componentFilter(level: string): LogFilter {
  const all = parseLogFilter(level);
  const levels = CONTROLLER_COMPONENTS.map((component) => `${component}=${LOG_LEVELS[all.rank(component)]}`);
  return all.with(levels.join(","));
}

/**
 * The request `/logging` (reference 5.7): without parameters shows the levels, `level` sets all, `<component>=<level>` sets one or
 * several. Nothing changes if any part is wrong.
 */
export function changeLogLevels(output: LogOutput, query: URLSearchParams): PlainReply {
  const changes = [...query];
  if (changes.length === 0) return textReply(200, `current log levels:\n---\n${shown(output.filter)}`);
  let filter = output.filter;
  let text = "";
  for (const [component, level] of changes) {
    if (component !== "level" && !isComponent(component))
      return refused(`logger not found for component: ${component}`);
    if (level === "")
      return refused(component === "level" ? "level: empty value" : `component ${component}: empty value`);
    if (!isLevel(level)) return refused(`unknown log level "${level}"; must be one of ${LEVELS.join(", ")}`);
    if (component === "level") {
      filter = componentFilter(level);
      text += `all logger levels updated to level: ${level}\n`;
    } else {
      filter = filter.with(`${component}=${level}`);
      text += `component ${component} log level set to: ${level}\n`;
    }
  }
  output.filter = filter;
  return textReply(200, text);
}

function shown(filter: LogFilter): string {
  return CONTROLLER_COMPONENTS.map((component) => `${component}: ${LOG_LEVELS[filter.rank(component)]}\n`).join("");
}

function isComponent(name: string): boolean {
  return CONTROLLER_COMPONENTS.some((component) => component === name);
}

function isLevel(level: string): boolean {
  return LEVELS.some((known) => known === level);
}

function refused(message: string): PlainReply {
  return textReply(400, `${message}\n`);
}
