import { jsonOf } from "../../base/fields.ts";
import type { NamedText } from "../../config/parse/config-files.ts";
import type { GatewayImpact } from "../../impact/merge.ts";
import type { RecordAnswer } from "../../recorder/records.ts";
import type { AskedExpression, Evaluation } from "../../rehearsal/evaluate.ts";
import type { Explanation } from "../../rehearsal/explanation.ts";
import type { Question, RecordedQuestion } from "../../rehearsal/question.ts";
import {
  type AdminAnswers,
  isAnswer,
  JSON_TYPE,
  type Overview,
  queryOf,
  type RequestsQuery,
  type RoutesAnswer,
  type RoutesQuery,
  type RouteView,
} from "../plane/answers.ts";
import type { BackendsAnswer, BackendsQuery, ProbeAnswer } from "../plane/backends.ts";
import type { CertificatesAnswer } from "../plane/certificates.ts";
import type { ConfigDifference } from "../plane/config-difference.ts";
import type { ConfigPartsAnswer, ConfigPartsQuery } from "../plane/config-parts.ts";
import type { ConfigStatus } from "../plane/config-status.ts";
import {
  type AdminAddress,
  AdminClientError,
  type AdminRequest,
  adminJson,
  adminText,
  describeAddress,
  openAdminRequest,
  readAnswer,
  withQuery,
} from "./client-request.ts";
import { TraceStream } from "./trace-stream.ts";

export type { ConfigStatus } from "../plane/config-status.ts";
export { type AdminAddress, AdminClientError } from "./client-request.ts";
export type { TraceStream } from "./trace-stream.ts";

const TIMEOUT = 10_000;
const HEAP_TIMEOUT = 30_000;
/** Others may be in progress. */
const EXPLAIN_TIMEOUT = 60_000;
/** The gateway itself gives up after a minute. */
const IMPACT_TIMEOUT = 90_000;

interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface TraceRequest extends CallOptions {
  /** CEL over the request: trace the next request for which it is true. Default: the next request. */
  readonly expression?: string | undefined;
  /** The next request for which this route is chosen: `<namespace>/<name>` or only the name. */
  readonly route?: string | undefined;
  /** Trace only the request that carries it in `TRACE_TOKEN_HEADER`; see `newTraceToken`. */
  readonly token?: string | undefined;
  /** Show the values of headers that hold secrets. Default false. */
  readonly reveal?: boolean | undefined;
  /** Bytes of each body to show, a number or a size such as `4KiB`; 0 = none. Default: the gateway's, 2 MiB. */
  readonly bodies?: number | string | undefined;
  /** Time after which the trace of a request ends, such as `30s`. Default: with the request. */
  readonly duration?: string | undefined;
}

/** Which requests to follow; see docs/trace.md. The gateway has defaults for absent fields. */
export interface FollowRequest extends CallOptions {
  /** CEL over the request as received. */
  readonly expression?: string | undefined;
  /** CEL over the outcome of the request. */
  readonly where?: string | undefined;
  readonly count?: number | undefined;
  /** A duration such as `30s`. */
  readonly for?: string | undefined;
  /** Bytes of each body, a number or a size such as `4KiB`. */
  readonly bodies?: number | string | undefined;
  /** Say why other routes were not selected. */
  readonly candidates?: boolean | undefined;
  /** Go on after the event with this id, in the stream that broke off there. */
  readonly lastEventId?: string | undefined;
}

/** What a web page asks. */
interface PageQuestion extends CallOptions {
  readonly method: "GET" | "POST";
  /** With its query. */
  readonly path: string;
  readonly body: string;
  /** Something changes, which gateways refuse pages of others; the page has shown its token to `tgctl`, which serves it. */
  readonly changes: boolean;
}

/** Admin servers admit pages of their own machine, which `tgctl` makes of those that it serves. */
const PAGE_ORIGIN = "http://localhost";

/** The admin interface of one gateway. Every method throws `AdminClientError`; `baseUrl` is such as `http://localhost:15000`. */
export class AdminClient {
  readonly #address: AdminAddress;

  constructor(address: AdminAddress) {
    this.#address = address;
  }

  /** The address as a user would write it. */
  get address(): string {
    return describeAddress(this.#address);
  }

  /** The configuration in effect (docs/tgctl.md#tgctl-proxy-config-all). */
  configDump(options: CallOptions = {}): Promise<unknown> {
    return this.#json("/config_dump", options);
  }

  async configStatus(options: CallOptions = {}): Promise<ConfigStatus> {
    return this.#answer("/config/status", await this.#json("/config/status", options));
  }

  async overview(options: CallOptions = {}): Promise<Overview> {
    return this.#answer("/overview", await this.#json("/overview", options));
  }

  async certificates(options: CallOptions = {}): Promise<CertificatesAnswer> {
    return this.#answer("/certificates", await this.#json("/certificates", options));
  }

  async configDifference(options: CallOptions = {}): Promise<ConfigDifference> {
    return this.#answer("/config/difference", await this.#json("/config/difference", options));
  }

  async configParts(query: ConfigPartsQuery = {}, options: CallOptions = {}): Promise<ConfigPartsAnswer> {
    return this.#answer("/config/parts", await this.#json(withQuery("/config/parts", queryOf(query)), options));
  }

  async routes(query: RoutesQuery = {}, options: CallOptions = {}): Promise<RoutesAnswer> {
    return this.#answer("/routes", await this.#json(withQuery("/routes", queryOf(query)), options));
  }

  /** The route with this key, and the policies in effect for it. */
  async route(key: string, options: CallOptions = {}): Promise<RouteView> {
    return this.#answer("/routes/", await this.#json(`/routes/${encodeURIComponent(key)}`, options));
  }

  /** Traces the next request that the gateway handles. Opens the stream at once; `opened` settles when it waits. */
  trace({ signal, ...request }: TraceRequest = {}): TraceStream {
    const path = withQuery("/debug/trace", queryOf(request));
    return new TraceStream((stop) => this.#open({ method: "POST", path, signal: stop, timeout: TIMEOUT }), signal);
  }

  /** Follows many requests. `opened` settles when the gateway has begun; the iteration ends with the stream. */
  follow({ signal, lastEventId, ...request }: FollowRequest = {}): TraceStream {
    const path = withQuery("/debug/follow", queryOf(request));
    const headers = lastEventId === undefined ? undefined : { "last-event-id": lastEventId };
    const call = { method: "POST", path, headers, timeout: TIMEOUT } as const;
    return new TraceStream((stop) => this.#open({ ...call, signal: stop }), signal);
  }

  /** What the gateway would do with a request, or what it did with one that is over. */
  async explain(question: Question | RecordedQuestion, { signal }: CallOptions = {}): Promise<Explanation> {
    const request = {
      method: "POST",
      path: "/explain",
      body: JSON.stringify(question),
      timeout: EXPLAIN_TIMEOUT,
    } as const;
    return this.#answer("/explain", await adminJson(this.#address, { ...request, signal }));
  }

  /** The value of an expression, and of each of its parts. */
  async evaluate(question: AskedExpression, { signal }: CallOptions = {}): Promise<Evaluation> {
    const request = { method: "POST", path: "/expression", body: JSON.stringify(question), timeout: TIMEOUT } as const;
    return this.#answer("/expression", await adminJson(this.#address, { ...request, signal }));
  }

  /** What a configuration would do to sampled requests. `last`: only those of this time, such as `1h`; `name`: how positions call it. */
  async impact(
    after: { readonly texts: readonly NamedText[] } | { readonly preview: string },
    { last, signal }: CallOptions & { readonly last?: string | undefined } = {},
  ): Promise<GatewayImpact> {
    const [text, words] = "texts" in after ? bodyOf(after.texts) : ["", after];
    const path = withQuery("/impact", queryOf({ last, ...words }));
    const request = { method: "POST", path, body: text, timeout: IMPACT_TIMEOUT, signal } as const;
    return this.#answer("/impact", await adminJson(this.#address, request));
  }

  /** Backends with the state of their endpoints; see docs/backends.md. */
  async backends(query: Partial<BackendsQuery>, options: CallOptions = {}): Promise<BackendsAnswer> {
    return this.#answer("/backends", await this.#json(withQuery("/backends", queryOf(query)), options));
  }

  /** Probes the endpoints of a backend, by its key; see docs/backends.md#probes. */
  async probe(key: string, { signal }: CallOptions = {}): Promise<ProbeAnswer> {
    const path = `/probe/${encodeURIComponent(key)}`;
    const request = { method: "POST", path, timeout: TIMEOUT, signal } as const;
    return this.#answer("/probe/", await adminJson(this.#address, request));
  }

  /** The records of finished requests; see docs/recorder.md. */
  async requests(query: RequestsQuery, options: CallOptions = {}): Promise<RecordAnswer> {
    return this.#answer("/requests", await this.#json(withQuery("/requests", queryOf(query)), options));
  }

  /** The records of the requests with this id or trace id, or the record `<worker>-<number>`; none if it is not kept any more. */
  async requestsOf(id: string, options: CallOptions = {}): Promise<RecordAnswer> {
    try {
      return this.#answer("/requests/", await this.#json(`/requests/${encodeURIComponent(id)}`, options));
    } catch (error) {
      const none = error instanceof AdminClientError && error.status === 404 ? jsonOf(error.body ?? "") : undefined;
      if (isAnswer("/requests/", none)) return none;
      throw error;
    }
  }

  /**
   * Asks for a web page: the server refuses what pages may not do. Resolves with the status and the text of any response; that of one with another
   * status than 200 is cut after 64 KiB.
   */
  async askForPage({
    method,
    path,
    body,
    changes,
    signal,
  }: PageQuestion): Promise<{ readonly status: number; readonly text: string }> {
    const timeout = method === "GET" ? TIMEOUT : IMPACT_TIMEOUT;
    const headers = { accept: JSON_TYPE, ...(!changes && { origin: PAGE_ORIGIN }) };
    const request = { method, path, body, timeout, signal, headers };
    try {
      return { status: 200, text: await this.#text(request) };
    } catch (error) {
      if (!(error instanceof AdminClientError) || error.status === undefined) throw error;
      return { status: error.status, text: error.body ?? "" };
    }
  }

  /** The server's text `current log level is <filter>`, with its line feed. */
  logging(options: CallOptions = {}): Promise<string> {
    return this.#text({ method: "POST", path: "/logging", timeout: TIMEOUT, ...options });
  }

  /**
   * As `logging`; a second line names modules that do not exist. Adds directives (`debug`, `proxy::match=trace,request=off`) to the log filter; `reset` first
   * returns it to its start.
   */
  setLogging(directives: string, options: CallOptions & { readonly reset?: boolean } = {}): Promise<string> {
    const query = new URLSearchParams();
    if (directives !== "") query.set("level", directives);
    if (options.reset === true) query.set("reset", "");
    const { signal } = options;
    return this.#text({ method: "POST", path: withQuery("/logging", query), timeout: TIMEOUT, signal });
  }

  /** A gzipped pprof CPU profile of all threads; takes `seconds` (1–300) to answer. `frequency` in Hz, 1–1000. */
  cpuProfile(
    seconds: number,
    { frequency, signal }: CallOptions & { readonly frequency?: number } = {},
  ): Promise<Uint8Array> {
    const path = withQuery("/debug/pprof/profile", queryOf({ seconds, frequency }));
    return this.#bytes({ method: "GET", path, timeout: seconds * 1000 + TIMEOUT, signal });
  }

  /** A gzipped pprof heap profile of all threads. */
  heapProfile({ signal }: CallOptions = {}): Promise<Uint8Array> {
    return this.#bytes({ method: "GET", path: "/debug/pprof/heap", timeout: HEAP_TIMEOUT, signal });
  }

  /** Memory statistics (docs/production.md#memory). */
  memory(options: CallOptions = {}): Promise<unknown> {
    return this.#json("/memory", options);
  }

  /** Requests and connections in progress. */
  tasks(options: CallOptions = {}): Promise<unknown> {
    return this.#json("/debug/tasks", options);
  }

  /** Begins the graceful shutdown. */
  quit({ signal }: CallOptions = {}): Promise<string> {
    return this.#text({ method: "POST", path: "/quitquitquit", timeout: TIMEOUT, signal });
  }

  /** Throws AdminClientError if the server sent something else. */
  #answer<Endpoint extends keyof AdminAnswers>(endpoint: Endpoint, value: unknown): AdminAnswers[Endpoint] {
    if (isAnswer(endpoint, value)) return value;
    throw new AdminClientError("protocol", `${this.address} returned something else than expected for ${endpoint}`);
  }

  #open(request: AdminRequest): ReturnType<typeof openAdminRequest> {
    return openAdminRequest(this.#address, request);
  }

  async #bytes(request: AdminRequest): Promise<Buffer> {
    return readAnswer(await this.#open(request), request.signal);
  }

  #text(request: AdminRequest): Promise<string> {
    return adminText(this.#address, request);
  }

  #json(path: string, { signal }: CallOptions): Promise<unknown> {
    return adminJson(this.#address, { method: "GET", path, timeout: TIMEOUT, signal });
  }
}

/** A configuration as a body of `/impact`, and the parameters that say what it is. */
function bodyOf(texts: readonly NamedText[]): readonly [body: string, parameters: Readonly<Record<string, string>>] {
  const [first, ...others] = texts;
  if (first === undefined || others.length > 0) return [JSON.stringify(texts), { files: "true" }];
  return [first.text, { name: first.name }];
}
