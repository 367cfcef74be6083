import type { Exemplar, Exemplars } from "./exemplars.ts";
import { METRICS, type MetricName, type MetricSpec, REQUEST_LABELS } from "./metric-table.ts";
import type { MetricsSnapshot, Sample } from "./metrics.ts";

/** The formats of metrics, and their media types. */
export const MEDIA_TYPES = {
  text: "text/plain; version=0.0.4; charset=utf-8",
  openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
} as const;
export type MetricsFormat = keyof typeof MEDIA_TYPES;

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

interface Rendering {
  /** Metrics to omit (`metrics.remove`), matched with or without prefix, unit and `_total`. */
  readonly remove?: readonly string[];
  /** Names of custom labels of the request metrics (`metrics.fields.add`). */
  readonly custom?: readonly string[];
  /** Default: the text format of Prometheus. */
  readonly format?: MetricsFormat;
  /** Only OpenMetrics shows them. */
  readonly exemplars?: Exemplars | undefined;
}

/** Merged counters and extra metrics in the text format of Prometheus (version 0.0.4) or as OpenMetrics (version 1.0). */
export function renderMetrics(
  snapshot: MetricsSnapshot,
  extra: readonly ExtraMetric[],
  { remove = [], custom = [], format = "text", exemplars }: Rendering = {},
): string {
  const open = format === "openMetrics";
  const removed = new Set(remove.map(bareName));
  let text = "";
  for (const { name, type, help, samples } of extra) {
    if (removed.has(bareName(name))) continue;
    text += header(name, type, help, open);
    for (const { labels, value } of samples) {
      const pairs = Object.entries(labels).map(([label, shown]) => pair(label, shown));
      text += renderSample(name, pairs, value, open);
    }
  }
  for (const key of metricNames()) {
    const samples = snapshot[key];
    if (samples === undefined || removed.has(bareName(key))) continue;
    const spec: MetricSpec = METRICS[key];
    text += header(PREFIX + key, spec.type, spec.help, open);
    const names = spec.labels === REQUEST_LABELS ? [...spec.labels, ...custom] : spec.labels;
    for (const { labels, value } of samples) {
      const pairs = names.map((label, i) => pair(label, labels[i] ?? ""));
      text += renderSample(PREFIX + key, pairs, value, open, open ? exemplars?.of(key, labels) : undefined);
    }
  }
  return open ? `${text}# EOF\n` : text;
}

/** `open`: as OpenMetrics. `exemplars`: of the buckets. */
function renderSample(
  name: string,
  pairs: readonly string[],
  value: Sample["value"],
  open: boolean,
  exemplars: readonly (Exemplar | undefined)[] = [],
): string {
  if (typeof value === "number") return `${name}${braces(pairs)} ${number(value)}\n`;
  let text = "";
  let total = 0;
  value.counts.forEach((count, i) => {
    const bound = number(value.bounds[i] ?? Number.POSITIVE_INFINITY);
    // OpenMetrics writes bounds as floating-point numbers; Prometheus before version 3 has other series for `1` than for `1.0`.
    const le = open && /^\d+$/.test(bound) ? `${bound}.0` : bound;
    total += count;
    text += `${name}_bucket${braces([...pairs, pair("le", le)])} ${number(total)}${exemplarText(exemplars[i])}\n`;
  });
  return `${text}${name}_sum${braces(pairs)} ${number(value.sum)}\n${name}_count${braces(pairs)} ${number(total)}\n`;
}

function exemplarText(exemplar: Exemplar | undefined): string {
  if (exemplar === undefined) return "";
  const pairs = Object.entries(exemplar.labels).map(([label, value]) => pair(label, value));
  return ` # ${braces(pairs)} ${number(exemplar.value)} ${exemplar.time.toFixed(3)}`;
}

function metricNames(): MetricName[] {
  return Object.keys(METRICS).filter((name): name is MetricName => name in METRICS);
}

/** `tracegate_response_bytes_total`, `response_bytes` and `response` name the same metric. */
function bareName(name: string): string {
  const base = name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name;
  return base.replace(/_total$/, "").replace(/_(seconds|bytes)$/, "");
}

/** In OpenMetrics the name of a counter is without the `_total` of its samples, and quotes in texts are escaped. */
function header(name: string, type: string, help: string, open: boolean): string {
  const family = open && type === "counter" ? name.replace(/_total$/, "") : name;
  const escaped = help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
  return `# HELP ${family} ${open ? escaped.replaceAll('"', '\\"') : escaped}\n# TYPE ${family} ${type}\n`;
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
