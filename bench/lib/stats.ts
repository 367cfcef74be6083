/** The middle value (the mean of the middle two); NaN for an empty list. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? Number.NaN;
  return (lower + upper) / 2;
}

/** Nearest-rank percentile, `share` from 0 to 1; NaN for an empty list. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

/**
 * Median of the ratios a[i]/b[i]. Rounds are interleaved, so what disturbs the machine for a while disturbs both sides of
 * one pair and cancels out, which it would not in a ratio of two medians.
 */
export function pairedRatio(a: readonly number[], b: readonly number[]): number {
  return median(a.map((value, index) => value / (b[index] ?? Number.NaN)));
}
