import type { VNode } from "preact";
import { linePath, type Sample } from "./line-path.ts";

const WIDTH = 240;
const HEIGHT = 36;

interface SparklineProps {
  readonly name: string;
  readonly samples: readonly Sample[];
  /** Seconds between two samples, and over all. */
  readonly step: number;
  readonly period: number;
  readonly format: (value: number) => string;
}

/** How a value went, with the latest and the largest in words. */
export function Sparkline({ name, samples, step, period, format }: SparklineProps): VNode {
  const values = samples.flatMap(({ value }) => (value === undefined ? [] : [value]));
  const last = values.at(-1);
  const most = Math.max(0, ...values);
  const to = Date.parse(samples.at(-1)?.time ?? "") || Date.now();
  const frame = { width: WIDTH, height: HEIGHT, from: to - period * 1000, to, top: most || 1, gap: step * 1500 };
  return (
    <figure class="line">
      <figcaption>
        {name} <strong>{last === undefined ? "–" : format(last)}</strong>{" "}
        <span class="quiet">{values.length === 0 ? "" : `at most ${format(most)}`}</span>
      </figcaption>
      <svg viewBox={`0 -2 ${WIDTH} ${HEIGHT + 4}`} width={WIDTH} height={HEIGHT} aria-hidden="true">
        <path d={linePath(samples, frame)} />
      </svg>
    </figure>
  );
}
