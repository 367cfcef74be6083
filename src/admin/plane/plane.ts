import type { Catalog, Scope } from "../../cel/index.ts";
import type { NamedText } from "../../config/parse/config-files.ts";
import type { GatewayImpact } from "../../impact/merge.ts";
import type { RecordAnswer, RecordQuery } from "../../recorder/records.ts";
import type { Evaluation } from "../../rehearsal/evaluate.ts";
import type { Explanation } from "../../rehearsal/explanation.ts";
import type { MetricsFormat } from "../../telemetry/prometheus.ts";
import type { Overview, RoutesAnswer, RoutesQuery, RouteView } from "./answers.ts";
import type { BackendsAnswer, BackendsQuery, BackendView, ProbeAnswer } from "./backends.ts";
import type { CertificatesAnswer } from "./certificates.ts";
import type { ConfigDifference } from "./config-difference.ts";
import type { ConfigPartsAnswer, ConfigPartsQuery } from "./config-parts.ts";
import type { ConfigStatus } from "./config-status.ts";

/**
 * Everything that the admin, stats and readiness servers can do with the gateway. They see the data plane through this interface
 * only, and every value is a snapshot.
 */
export interface AdminPlane {
  /** The configuration in effect (docs/tgctl.md#tgctl-proxy-config-all), secrets redacted; keys in display order. */
  configDump(): Promise<unknown>;
  /** Its parts, searched and in pages, secrets redacted. */
  configParts(question: ConfigPartsQuestion): Promise<ConfigPartsAnswer>;
  /** How the configuration file differs from what is in effect, secrets redacted. */
  configDifference(): Promise<ConfigDifference>;
  configStatus(): ConfigStatus;
  /** The admin server has made an answer. */
  answered(): void;
  overview(): Overview;
  routes(question: RoutesQuestion): Promise<RoutesAnswer>;
  /** One route by its key, with its policies; undefined if the key is unknown. */
  route(key: string): Promise<RouteView | undefined>;
  /** Certificates of the listeners in effect. */
  certificates(): CertificatesAnswer;
  /** Backends and services with the state of their endpoints. */
  backends(query: BackendsQuery): Promise<BackendsAnswer>;
  /** One backend or service by its key, with longer lists than in `backends`; undefined if the key is unknown. */
  backend(key: string): Promise<BackendView | undefined>;
  /**
   * Probes the endpoints of a backend once; undefined if the key is unknown. Their state stays as it is.
   * @throws AdminUnavailable while others are probed, and until a second after that
   */
  probe(key: string): Promise<ProbeAnswer | undefined>;
  /**
   * Waits for the next request and sends its events to `reader`, then calls `reader.end()`. Resolves when it waits.
   * @throws AdminBadRequest for an expression that does not compile
   * @throws AdminUnavailable when the maximum number of traces is open
   */
  openTrace(options: TraceOptions, reader: TraceReader): Promise<TraceHandle>;
  /** Sends the events of many requests to `reader`, then calls `reader.end()`. Resolves once it waits for requests. Throws as `openTrace`. */
  openFollow(options: FollowOptions, reader: FollowReader): Promise<TraceHandle>;
  /**
   * Sends what follows the event with this id to `reader`, in place of the reader that it was written to.
   * @throws AdminGone when that stream is over
   */
  resumeFollow(id: string, reader: FollowReader): TraceHandle;
  /**
   * Explains what the gateway would do with a request, or what it did with one that is over; `question`: see `Question` and `RecordedQuestion`.
   * @throws BadFacts for a question that cannot be rehearsed, BadConfiguration for its configuration, NoRecord for an unknown id
   * @throws AdminUnavailable when too many are waiting
   */
  explain(question: unknown): Promise<Explanation>;
  /**
   * Evaluates an expression for a request that is written, or for one that is over; `question`: see `ExpressionQuestion`.
   * @throws BadFacts for a question that has no answer, NoRecord for an unknown id
   */
  evaluate(question: unknown): Promise<Evaluation>;
  /** What an expression in this scope can use, with the functions of the configuration in effect. */
  expressionNames(scope: Scope): Promise<Catalog>;
  /**
   * What a configuration would do to sampled requests, in place of the one in effect. Nothing of it is applied.
   * @throws BadConfiguration with every problem
   * @throws AdminBadRequest if no samples are taken
   * @throws AdminUnavailable while another one is compared
   */
  impact(question: ImpactQuestion): Promise<GatewayImpact>;
  /**
   * The records of finished requests.
   * @throws AdminBadRequest for an expression that does not compile, and if the recorder is off
   */
  requests(question: RequestsQuestion): RecordAnswer;
  /** The records of requests with this id or trace id, or the record with this number, `<worker>-<number>`. Throws as `requests`. */
  requestsOf(id: string): RecordAnswer;
  /**
   * A sample file with the requests that arrived after `since`, in milliseconds since the epoch.
   * @throws AdminBadRequest if the gateway takes no samples
   */
  samples(since: number): string;
  /** The canonical text of the current log filter. */
  logFilter(): string;
  /**
   * Adds directives to the log filter (empty: none) and returns its new text; `reset` first restores the filter of the start.
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
  /** All metrics. OpenMetrics has exemplars, which cost a search of the kept records. */
  metricsText(format: MetricsFormat): Promise<string>;
  /** Names of pending startup tasks; empty = ready. */
  pending(): readonly string[];
  /** Whether the graceful shutdown has begun. */
  draining(): boolean;
  /** Begins the graceful shutdown and returns at once. */
  shutdown(): void;
  readonly version: string;
  /** `config.admin`: what clients may do besides reading; `config.ui`: whether there is a web view. */
  readonly permits: {
    readonly reveal: boolean;
    readonly quit: boolean;
    readonly browserOrigins: readonly string[];
    readonly ui: boolean;
  };
}

/** A configuration, and the samples by which to judge it. */
interface ImpactQuestion {
  /** The configuration after the change: its texts, or what the controller keeps under this id. */
  readonly after: { readonly texts: readonly NamedText[] } | { readonly preview: string };
  /** Only requests that arrived later, epoch ms. */
  readonly since: number;
}

/** Which routes to show. */
type ConfigPartsQuestion = ConfigPartsQuery & Required<Pick<ConfigPartsQuery, "limit">>;
type RoutesQuestion = RoutesQuery & Required<Pick<RoutesQuery, "page" | "limit">>;

/** Which records to find; `where`: CEL over a record. */
type RequestsQuestion = Omit<RecordQuery, "where"> & { readonly where?: string | undefined };

export interface TraceOptions {
  /** CEL over the request; undefined = any request. */
  readonly expression?: string;
  /** Only the request that carries it in `TRACE_TOKEN_HEADER`. */
  readonly token?: string;
  /** Only a request for which this route is chosen: `<namespace>/<name>` or only the name. */
  readonly route?: string;
  /** Show the values of headers that hold secrets. */
  readonly reveal: boolean;
  /** Bytes of each body to show at most; 0 = no bodies. */
  readonly maxBodyBytes: number;
  /** Milliseconds of a request after which its trace ends; undefined: with the request. */
  readonly maxMs?: number;
}

/** Which requests to follow, and what to show of them. */
export interface FollowOptions {
  /** CEL over the request as received; undefined: every request. */
  readonly expression?: string;
  /** CEL over the outcome of the request, as the recorder has it. */
  readonly where?: string;
  /** Requests after which following ends. */
  readonly count: number;
  /** Milliseconds after which it ends. */
  readonly forMs: number;
  /** Shows at most so many bytes of each body. */
  readonly maxBodyBytes: number;
  /** Say why other routes were not selected. */
  readonly candidates: boolean;
}

/** Where the events of followed requests go. */
interface FollowReader extends Omit<TraceReader, "event"> {
  /** As `TraceReader.event`, of several events at once; `id`: of the server-sent event. Without `json` there is only the id. */
  events(events: readonly { readonly json?: string; readonly id: string }[]): boolean;
}

/** Where the events of one trace go. */
export interface TraceReader {
  /** Takes the JSON text of one event, without line feeds. false: the buffer is full and the event was not taken. */
  event(json: string): boolean;
  /** Set by the hub: invoked when there is room again after an event was not taken. */
  onDrain: (() => void) | undefined;
  /** No more events follow; those that were taken are still delivered. */
  end(): void;
}

export interface TraceHandle {
  /** The reader has disconnected: stop waiting or sending. Safe to call after the end. */
  close(): void;
}

/** The request is invalid: status 400 with this message. */
export class AdminBadRequest extends Error {}

/** The configuration does not allow the request: status 403 with this message. */
export class AdminForbidden extends Error {}

/** What the request names is over: status 410 with this message. */
export class AdminGone extends Error {}

/** A temporary condition: status 503 with this message. */
export class AdminUnavailable extends Error {}
