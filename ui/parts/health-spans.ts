import type { HealthChange } from "../../src/telemetry/health-history.ts";

/** A time during which an endpoint was in one state; times in ms since the epoch. */
interface HealthSpan {
  readonly from: number;
  readonly to: number;
  readonly state: HealthChange["state"];
}

/** In which states an endpoint was between two times, the earliest first, by its changes, the latest first. Nothing is known before the first one. */
export function healthSpans(changes: readonly HealthChange[], from: number, to: number): readonly HealthSpan[] {
  const spans: HealthSpan[] = [];
  const add = (start: number, end: number, state: HealthChange["state"]): void => {
    const span = { from: Math.max(from, start), to: Math.min(to, end), state };
    if (span.from < span.to) spans.push(span);
  };
  // The state that active checks have found, which an eviction interrupts.
  let checked: HealthChange["state"] = "healthy";
  for (const [index, change] of changes.toReversed().entries()) {
    const next = changes.at(-2 - index)?.at ?? to;
    if (change.state !== "evicted") {
      checked = change.state;
      add(change.at, next, checked);
      continue;
    }
    const end = Math.min(next, change.at + change.forMs);
    add(change.at, end, "evicted");
    add(end, next, checked);
  }
  return spans;
}
