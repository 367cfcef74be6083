import { timeOf } from "./exchange.ts";
import type { Row } from "./rows.ts";

/** Time that an event stands for, in microseconds since the trace began. */
export interface Span {
  /** `step`: in the gateway; `call`: waiting for the backend. */
  readonly name: "step" | "dns" | "connect" | "tls" | "call";
  readonly start: number;
  readonly end: number;
}

/** The time of an event: a call with its parts; for any other event, the time since the one before. Empty if the event has no time. */
export function spansOf(row: Row): readonly Span[] {
  const { start, end, began } = row;
  if (end === undefined) return [];
  if (start === undefined) return [{ name: "step", start: began, end }];
  const spans: Span[] = [];
  let at = start;
  for (const name of ["dns", "connect", "tls"] as const) {
    const took = timeOf(row, name) ?? 0;
    if (took === 0 || at + took > end) continue;
    spans.push({ name, start: at, end: at + took });
    at += took;
  }
  return [...spans, { name: "call", start: at, end }];
}
