import type { VNode } from "preact";
import { timeText } from "../../src/report/health.ts";
import type { HealthChange } from "../../src/telemetry/health-history.ts";
import { healthSpans } from "./health-spans.ts";

const WIDTH = 240;
const HEIGHT = 12;

interface HealthStripProps {
  readonly changes: readonly HealthChange[];
  /** Milliseconds since the epoch, and of the time before it that is drawn. */
  readonly now: number;
  readonly period: number;
}

/** In which states an endpoint was: a line where nothing is known, a color for each state otherwise. Says nothing that its changes do not say in words. */
export function HealthStrip({ changes, now, period }: HealthStripProps): VNode {
  const from = now - period;
  const x = (at: number): number => (WIDTH * (at - from)) / period;
  return (
    <svg class="health" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT} aria-hidden="true">
      <title>{`from ${timeText(from)} to ${timeText(now)}`}</title>
      {healthSpans(changes, from, now).map((span) => (
        <rect
          key={`${span.from}${span.state}`}
          class={span.state}
          x={x(span.from)}
          // One second must be visible.
          width={Math.max(1.5, x(span.to) - x(span.from))}
          height={HEIGHT}
        />
      ))}
    </svg>
  );
}
