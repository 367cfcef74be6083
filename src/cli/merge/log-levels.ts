import type { LogLevels } from "../../admin/plane/log-levels.ts";

/** The log levels of replicas, at least one. */
export function mergeLogLevels(answers: readonly LogLevels[]): LogLevels {
  const modules = Map.groupBy(
    answers.flatMap((each) => each.modules),
    ({ name }) => name,
  );
  return {
    filters: [...new Set(answers.flatMap(({ filters }) => filters))],
    level: common(answers),
    modules: Array.from(modules, ([name, alike]) => ({
      name,
      level: common(alike),
      own: alike.some(({ own }) => own),
    })),
  };
}

function common(all: readonly Pick<LogLevels, "level">[]): LogLevels["level"] {
  const [first] = all;
  return all.every(({ level }) => level === first?.level) ? (first?.level ?? null) : null;
}
