/** Microseconds for people: `289 µs`, `2.385 ms`, `1.25 s`. */
export function duration(microseconds: number): string {
  if (microseconds < 1000) return `${microseconds} µs`;
  if (microseconds < 1_000_000) return `${Number((microseconds / 1000).toFixed(3))} ms`;
  return `${Number((microseconds / 1_000_000).toFixed(3))} s`;
}

/** Microseconds as milliseconds with three digits, for columns; empty when unknown. */
export function milliseconds(microseconds: number | undefined): string {
  return microseconds === undefined ? "" : (microseconds / 1000).toFixed(3);
}
