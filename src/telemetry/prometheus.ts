import { METRICS, type MetricName, type MetricSpec, REQUEST_LABELS } from "./metric-table.ts";
import type { MetricsSnapshot, Sample } from "./metrics.ts";

export const PROMETHEUS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";
const PREFIX = "tracegate_";

/** A metric that the main thread or the controller adds, such as `tracegate_config_synchronized`; `name` includes the prefix. */
export interface ExtraMetric extends Pick<MetricSpec, "type" | "help"> {
  readonly name: string;
  readonly samples: readonly LabelledSample[];
}

export interface LabelledSample extends Pick<Sample, "value"> {
  readonly labels: Readonly<Record<string, string>>;
}

export const gauge = extraMetric("gauge");
export const counter = extraMetric("counter");
export const histogram = extraMetric("histogram");

/** `samples`: for a metric without labels, just its value. */
function extraMetric(type: MetricSpec["type"]) {
  return (name: string, help: string, samples: Sample["value"] | readonly LabelledSample[]): ExtraMetric => {
    const list = typeof samples === "object" && !("bounds" in samples) ? samples : [{ labels: {}, value: samples }];
    return { name, type, help, samples: list };
  };
}

/**
 * The Prometheus text format (version 0.0.4) of merged counters and extra metrics.
 * @param remove metrics to omit (`metrics.remove`), matched with or without prefix, unit and `_total`
 * @param custom names of custom labels of the request metrics (`metrics.fields.add`)
 */
export function renderPrometheus(
  snapshot: MetricsSnapshot,
  extra: readonly ExtraMetric[],
  remove: readonly string[],
  custom: readonly string[] = [],
): string {
  const removed = new Set(remove.map(bareName));
  let text = "";
  for (const { name, type, help, samples } of extra) {
    if (removed.has(bareName(name))) continue;
    text += header(name, type, help);
    for (const { labels, value } of samples) {
      const pairs = Object.entries(labels).map(([label, shown]) => pair(label, shown));
      text += renderSample(name, pairs, value);
    }
  }
  for (const key of metricNames()) {
    const samples = snapshot[key];
    if (samples === undefined || removed.has(bareName(key))) continue;
    const spec: MetricSpec = METRICS[key];
    text += header(PREFIX + key, spec.type, spec.help);
    const names = spec.labels === REQUEST_LABELS ? [...spec.labels, ...custom] : spec.labels;
    for (const { labels, value } of samples) {
      const pairs = names.map((label, i) => pair(label, labels[i] ?? ""));
      text += renderSample(PREFIX + key, pairs, value);
    }
  }
  return text;
}

function renderSample(name: string, pairs: readonly string[], value: Sample["value"]): string {
  if (typeof value === "number") return `${name}${braces(pairs)} ${number(value)}\n`;
  let text = "";
  let total = 0;
  value.counts.forEach((count, i) => {
    const bound = value.bounds[i];
    total += count;
    text += `${name}_bucket${braces([...pairs, pair("le", number(bound ?? Number.POSITIVE_INFINITY))])} ${number(total)}\n`;
  });
  return `${text}${name}_sum${braces(pairs)} ${number(value.sum)}\n${name}_count${braces(pairs)} ${number(total)}\n`;
}

function metricNames(): MetricName[] {
  return Object.keys(METRICS).filter((name): name is MetricName => name in METRICS);
}

/** `tracegate_response_bytes_total`, `response_bytes` and `response` name the same metric. */
function bareName(name: string): string {
  const base = name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name;
  return base.replace(/_total$/, "").replace(/_(seconds|bytes)$/, "");
}

function header(name: string, type: string, help: string): string {
  return `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}\n# TYPE ${name} ${type}\n`;
}

function pair(name: string, value: string): string {
  const shown = value === "" ? "unknown" : value;
  return `${name}="${shown.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
}

function braces(pairs: readonly string[]): string {
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function number(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
}
