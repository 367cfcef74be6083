/** A value at a time; undefined: there is none. */
export interface Sample {
  /** ISO 8601 */
  readonly time: string;
  readonly value: number | undefined;
}

interface Frame {
  readonly width: number;
  readonly height: number;
  /** Milliseconds since the epoch at the left and the right edge. */
  readonly from: number;
  readonly to: number;
  /** The value at the upper edge; the lower one is 0. */
  readonly top: number;
  /** Milliseconds: samples further apart than this are not joined. */
  readonly gap: number;
}

/** The samples as the path of an SVG, with gaps where nothing is known: a gap is not a zero. */
export function linePath(samples: readonly Sample[], { width, height, from, to, top, gap }: Frame): string {
  let before: number | undefined;
  let path = "";
  for (const { time, value } of samples) {
    const at = Date.parse(time);
    if (value === undefined) {
      before = undefined;
      continue;
    }
    const x = (width * (at - from)) / (to - from);
    const y = height - (height * Math.min(value, top)) / top;
    const joins = before !== undefined && at - before <= gap;
    path += `${joins ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    // A lone sample is a dot.
    if (!joins) path += "h0";
    before = at;
  }
  return path;
}
