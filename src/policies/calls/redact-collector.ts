import type { AccessLog, Collector, Tracing } from "../../ir/ir.ts";
import { redactCalling } from "./redact.ts";

/** Settings of exports as the configuration has them: beside the fields that name the collector. */
export function redactTracing({ collector, ...others }: Tracing, hidden: ReadonlySet<string>): unknown {
  return { ...redactCollector(collector, hidden), ...others };
}

export function redactAccessLog({ otlp, ...own }: AccessLog, hidden: ReadonlySet<string>): unknown {
  if (otlp === undefined) return own;
  const { collector, filter, ...fields } = otlp;
  const { resources: _none, ...shown } = redactCollector(collector, hidden);
  return { ...own, otlp: { ...shown, ...(filter !== undefined && { filter }), fields } };
}

/** What is added to exports is credentials, whatever the headers are called. */
function redactCollector(collector: Collector, hidden: ReadonlySet<string>): Readonly<Record<string, unknown>> {
  const { add = {}, set = {} } = collector.policies?.requestHeaderModifier ?? {};
  const names = [...Object.keys(add), ...Object.keys(set)].map((name) => name.toLowerCase());
  return redactCalling(collector, new Set([...hidden, ...names]));
}
