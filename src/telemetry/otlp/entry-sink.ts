import type { Signal } from "./messages.ts";

/** Accepts entries for export; never waits and never throws. */
export interface EntrySink {
  /** `entry`: from `encodeSpan` or `encodeLogRecord`; `exporter`: from `exporterKey`. */
  add(exporter: string, entry: Uint8Array): void;
}

/** Identifies an exporter across threads. */
export function exporterKey(signal: Signal, collector: object): string {
  return `${signal} ${JSON.stringify(collector)}`;
}
