import type { Signal } from "./messages.ts";

/** Where a thread puts what it wants exported; it never waits and never throws. */
export interface EntrySink {
  /** `entry` as `encodeSpan` or `encodeLogRecord` has made it; `exporter` as `exporterKey`. */
  add(exporter: string, entry: Uint8Array): void;
}

/** The identity of an exporter, by which threads name it. */
export function exporterKey(signal: Signal, collector: object): string {
  return `${signal} ${JSON.stringify(collector)}`;
}
