import type { ConfigStatus } from "./config-status.ts";

/**
 * What the admin, stats and readiness servers may ask of the gateway. They see the data plane through this and nothing
 * else; every value is a snapshot.
 */
export interface AdminPlane {
  /** The configuration in force (reference 4.4), secrets redacted; keys in the order they shall be shown. */
  configDump(): Promise<unknown>;
  configStatus(): ConfigStatus;
  /**
   * Waits for the next request and sends its events to `reader`, then calls `reader.end()`. Resolves when it waits.
   * @throws AdminBadRequest for an expression that does not compile
   * @throws AdminUnavailable when as many traces as there can be are waiting or being sent
   */
  openTrace(options: TraceOptions, reader: TraceReader): Promise<TraceHandle>;
  /** The canonical text of the log filter in force. */
  logFilter(): string;
  /**
   * Adds directives to the log filter (empty: none), after returning it to its start when `reset`; returns the new text.
   * @throws AdminBadRequest with message `Invalid level provided: <directives>`
   */
  setLogFilter(directives: string, reset: boolean): string;
  /** See `memoryReport`. */
  memory(): Promise<unknown>;
  /** A gzipped pprof profile of all threads; see `mergeCpuProfiles`. Stops early when `signal` aborts. */
  cpuProfile(seconds: number, hz: number, signal: AbortSignal): Promise<Uint8Array>;
  /** A gzipped pprof profile of all threads; see `mergeHeapProfiles`. */
  heapProfile(): Promise<Uint8Array>;
  /** Requests and connections in progress. */
  tasks(): Promise<unknown>;
  /** The Prometheus text format. */
  metricsText(): Promise<string>;
  /** Names of the startup tasks that are not done; empty = ready. */
  pending(): readonly string[];
  /** Whether the graceful shutdown has begun. */
  draining(): boolean;
  /** Begins the graceful shutdown and returns at once. */
  shutdown(): void;
  readonly version: { readonly version: string };
}

export interface TraceOptions {
  /** CEL over the request; undefined = any request. */
  readonly expression?: string;
  /** Only the request that carries it in `TRACE_TOKEN_HEADER`. */
  readonly token?: string;
  /** Show the values of headers that hold secrets. */
  readonly reveal: boolean;
  /** Bytes of each body to show at most; 0 = no bodies. */
  readonly maxBodyBytes: number;
}

/** Where the events of one trace go. */
export interface TraceReader {
  /** Takes the JSON text of one event, without line feeds. False: the reader is behind and the event was not taken. */
  event(json: string): boolean;
  /** Set by the hub: called when the reader takes events again after it refused one. */
  onDrain: (() => void) | undefined;
  /** No more events; what was taken is still delivered. */
  end(): void;
}

export interface TraceHandle {
  /** The reader has gone: stop waiting or sending. Safe to call after the end. */
  close(): void;
}

/** The caller's mistake: answered with status 400 and this message. */
export class AdminBadRequest extends Error {}

/** Nobody's mistake, and it may pass: answered with status 503 and this message. */
export class AdminUnavailable extends Error {}
