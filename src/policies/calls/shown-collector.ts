import type { AccessLog, Collector, Tracing } from "../../ir/ir.ts";
import { shownCalling } from "./shown.ts";

/** Settings of exports as the configuration has them: beside the fields that name the collector. */
export function shownTracing({ collector, ...others }: Tracing, hidden: ReadonlySet<string>): unknown {
  return { ...shownCollector(collector, hidden), ...others };
}

export function shownAccessLog({ otlp, ...own }: AccessLog, hidden: ReadonlySet<string>): unknown {
  if (otlp === undefined) return own;
  const { collector, filter, ...fields } = otlp;
  const { resources: _none, ...shown } = shownCollector(collector, hidden);
  return { ...own, otlp: { ...shown, ...(filter !== undefined && { filter }), fields } };
}

/** What is added to exports is credentials, whatever the headers are called. */
function shownCollector(collector: Collector, hidden: ReadonlySet<string>): Readonly<Record<string, unknown>> {
  const { add = {}, set = {} } = collector.policies?.requestHeaderModifier ?? {};
  const names = [...Object.keys(add), ...Object.keys(set)].map((name) => name.toLowerCase());
  return shownCalling(collector, new Set([...hidden, ...names]));
}
