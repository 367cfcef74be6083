/** What the admin server answers, as types that it shares with its clients: `tgctl` and the web view. */
import { isObject } from "../../base/fields.ts";
import type { Origin } from "../../base/origin.ts";
import type { Catalog } from "../../cel/index.ts";
import type { GatewayImpact } from "../../impact/merge.ts";
import type { RecordAnswer, RequestRecord } from "../../recorder/records.ts";
import type { Evaluation } from "../../rehearsal/evaluate.ts";
import type { Explanation } from "../../rehearsal/explanation.ts";
import type { RequestGroup } from "../../report/recorded.ts";
import type { WorkerState } from "../../telemetry/worker-state.ts";
import type { BackendsAnswer, BackendView, ProbeAnswer, Shortened } from "./backends.ts";
import type { CertificatesAnswer } from "./certificates.ts";
import type { ConfigDifference } from "./config-difference.ts";
import type { ConfigPartsAnswer } from "./config-parts.ts";
import type { ConfigStatus } from "./config-status.ts";
import type { LogLevels } from "./log-levels.ts";

/** The JSON of an endpoint with status 200, by the path of its route. */
export interface AdminAnswers {
  readonly "/backends": BackendsAnswer;
  readonly "/backends/": BackendView;
  readonly "/certificates": CertificatesAnswer;
  readonly "/config/difference": ConfigDifference;
  readonly "/config/parts": ConfigPartsAnswer;
  readonly "/config/status": ConfigStatus;
  readonly "/explain": Explanation;
  readonly "/export": ExportedFile;
  readonly "/expression": Evaluation;
  readonly "/expression/names": Catalog;
  readonly "/impact": GatewayImpact;
  /** For programs that ask for JSON; others get a line of text. */
  readonly "/logging": LogLevels;
  readonly "/overview": Overview;
  /** What the server's own page shows to change something. */
  readonly "/page-token": { readonly token: string };
  readonly "/probe/": ProbeAnswer;
  readonly "/requests": RecordAnswer;
  readonly "/routes": RoutesAnswer;
  readonly "/routes/": RouteView;
  /** With status 404, it says how far back the request would have been found. */
  readonly "/requests/": RecordAnswer;
}

/** The type of answers. Clients that accept exactly this, as programs do, get them compact; people get them indented. */
export const JSON_TYPE = "application/json";

/** The field in which the server's own page shows its token. Pages of other origins would need a preflight for it, which is not granted. */
export const PAGE_TOKEN_HEADER = "x-tracegate-page-token";

/** A file to save. */
export interface ExportedFile {
  readonly name: string;
  readonly text: string;
}

/** Whether all is well with a gateway, and how much it does. */
export interface Overview {
  readonly version: string;
  /** As `/config/status`. */
  readonly status: ConfigStatus;
  /** Names of pending startup tasks; empty: ready. */
  readonly pending: readonly string[];
  /** The graceful shutdown has begun. */
  readonly draining: boolean;
  readonly workers: readonly OverviewWorker[];
  /** In the order of the configuration. */
  readonly listeners: readonly ListenerState[];
  readonly traffic: {
    /** Seconds between two points, whose times are multiples of it. */
    readonly step: number;
    /** Of the last 15 minutes, the oldest first. The last one is not over yet. Where points are missing, nothing is known. */
    readonly points: readonly TrafficPoint[];
  };
  /** Requests of the last 15 minutes that failed or were rejected; null: the recorder is off. */
  readonly failures: Failures | null;
}

interface OverviewWorker extends WorkerState {
  /** The replica that it belongs to, where `tgctl` shows several as one gateway. */
  readonly pod?: string;
}

/** A listener and the port that it serves. */
export interface ListenerState {
  readonly key: string;
  readonly name: string;
  /** `<namespace>/<name>` */
  readonly gateway: string;
  /** `*` for every host. */
  readonly hostname: string;
  readonly protocol: "HTTP" | "HTTPS" | "TCP" | "TLS" | "UDP";
  /** Key of the bind. */
  readonly bind: string;
  /** `<host>:<port>` that it listens on; null: it serves connections within the gateway. */
  readonly address: string | null;
  /** How many routes it has. */
  readonly routes: number;
  readonly origin?: Origin;
}

/** HTTP requests that ended until a point in time, since the one before. */
export interface TrafficPoint {
  /** ISO 8601 */
  readonly time: string;
  /** Since the point before. */
  readonly seconds: number;
  readonly requests: number;
  /** Of them, those that failed or that the gateway rejected, calls of gRPC by their own status. */
  readonly errors: number;
  /** Milliseconds that half of them, and 99 % of them, took at most, as exact as the buckets of metrics; absent without requests. */
  readonly p50?: number;
  readonly p99?: number;
}

/** What failed, in groups of what ended alike, the largest first. */
interface Failures extends Omit<RecordAnswer, "records" | "until"> {
  /** ISO 8601: requests that ended later. */
  readonly since: string;
  /** Of the newest 2000 that were found, at most 50 groups. */
  readonly groups: readonly RequestGroup<RequestRecord>[];
}

/** What routes can be sorted by; all but the first two: the largest first, of `latest` the newest. */
export const ROUTE_ORDERS = ["precedence", "name", "requests", "errors", "p50", "p99", "latest"] as const;

/** The query of `/routes`. */
export interface RoutesQuery {
  /** Text in a key, name, hostname, path, method, backend, listener or bind, in upper or lower case. */
  readonly search?: string | undefined;
  /** Key of a listener: only its routes. */
  readonly listener?: string | undefined;
  readonly sort?: (typeof ROUTE_ORDERS)[number] | undefined;
  /** From 1 on. */
  readonly page?: number;
  /** Routes of a page at most. */
  readonly limit?: number;
}

/** A page of the routes of the configuration in effect. */
export interface RoutesAnswer {
  readonly generation: number;
  /** ISO 8601: since then requests are counted, which is the start of the gateway. */
  readonly since: string;
  /** How many routes there are, and how many of them fit the search. */
  readonly total: number;
  readonly found: number;
  readonly routes: readonly RouteRow[];
}

/** A backend of a route. */
interface RouteBackendRow {
  /** As in `/backends`; `group NAME` for a route group. */
  readonly name: string;
  readonly weight: number;
  /** In `/backends/KEY`; absent for a route group. */
  readonly key?: string;
}

/** A route with its traffic. */
export interface RouteRow {
  readonly key: string;
  /** `<namespace>/<name>` */
  readonly name: string;
  readonly rule?: string;
  /** Where it gets requests: a listener of a bind, or a group that other routes delegate to. */
  readonly bind?: string;
  readonly listener?: string;
  readonly group?: string;
  /** From 1 on, in the order in which that tries its routes. */
  readonly position: number;
  readonly hostnames: readonly string[];
  /** In words, secrets redacted; empty for TCP, TLS and UDP. */
  readonly matches: readonly string[];
  readonly backends: readonly RouteBackendRow[];
  readonly origin?: Origin;
  /** Names of the routes that get all requests for which it could be chosen, so it never is. */
  readonly shadowedBy?: readonly string[];
  /** HTTP requests; of routes of connections, 0. */
  readonly requests: number;
  /** As in the traffic of an overview, like `p50` and `p99`. */
  readonly errors: number;
  readonly p50?: number;
  readonly p99?: number;
  /** ISO 8601: when the latest request ended; absent without requests. */
  readonly latest?: string;
  /**
   * The traffic is that of so many routes together, because metrics have the same labels for them: those of the same name and rule at one
   * listener, such as the rules without a name of an HTTPRoute. Absent: of this route alone.
   */
  readonly countedTogether?: number;
}

/** A route with the policies in effect for it. */
export interface RouteView {
  readonly generation: number;
  /** As in `RoutesAnswer`. */
  readonly since: string;
  /** A route of a file has one place; one of Kubernetes has the same key at each of its listeners. */
  readonly places: Shortened<PlacedRoute>;
}

/** A route at a listener or in a group. */
export interface PlacedRoute extends RouteRow {
  /** The routes that delegate to its group. Their policies of the phase `route` run too, unless it has its own of the kind. */
  readonly parents?: readonly Pick<RouteRow, "key" | "name" | "rule">[];
  /** In a group only `route`: the phase `gateway` is that of the listener that got the request. */
  readonly policies: { readonly gateway?: readonly EffectivePolicy[]; readonly route: readonly EffectivePolicy[] };
  /** Of each backend, in the order of `backends`. */
  readonly backendPolicies: readonly (readonly EffectivePolicy[])[];
}

/** A policy in effect. In a list, they stand in the order in which they run on requests; then come those of responses, then settings of connections. */
export interface EffectivePolicy {
  /** As users write it. */
  readonly kind: string;
  /** It decides without effect. */
  readonly shadow?: true;
  /** Neither: a setting of connections to the backend. */
  readonly runs: readonly ("request" | "response")[];
  /** Several if levels add up, as `authorization` does; the outermost first. */
  readonly from: readonly WrittenPolicy[];
  /** Those that it has replaced here, the outermost first. */
  readonly replaced: readonly WrittenPolicy[];
  /** Without secrets. */
  readonly config: unknown;
}

/** Where a policy is written, and to what it is attached. */
export interface WrittenPolicy {
  readonly origin: Origin;
  /** Absent: unknown, because it has several targets. */
  readonly attachedTo?: "gateway" | "listener" | "route" | "rule" | "backend" | "service";
  /** How many rules of `authorization` are written there. */
  readonly rules?: number;
}

/** The query of `/requests`. */
export interface RequestsQuery {
  /** CEL over a record. */
  readonly where?: string | undefined;
  /** A duration such as `5m`: only requests that ended within it. */
  readonly last?: string | undefined;
  /** ISO 8601, such as `until` of the answer before: only requests that ended later. */
  readonly since?: string | undefined;
  /** `<namespace>/<name>` or only the name. */
  readonly route?: string | undefined;
  /** Only what failed or was rejected, or only what was slow; with both, either kind. */
  readonly errors?: boolean;
  readonly slow?: boolean;
  /** How many at most, the newest first. */
  readonly limit?: number;
}

/** What tells an answer from that of another program: versions may add fields, so no more than this is looked at. */
const MARKS: { readonly [Endpoint in keyof AdminAnswers]: (answer: Readonly<Record<string, unknown>>) => boolean } = {
  "/backends": ({ backends }) => isObject(backends),
  "/backends/": ({ endpoints }) => isObject(endpoints),
  "/certificates": ({ certificates }) => Array.isArray(certificates),
  "/config/difference": ({ hunks, unknown }) => Array.isArray(hunks) || typeof unknown === "string",
  "/config/parts": ({ parts }) => Array.isArray(parts),
  "/config/status": ({ generation, synchronized }) => generation !== undefined && synchronized !== undefined,
  "/export": ({ name, text }) => typeof name === "string" && typeof text === "string",
  "/explain": ({ outcomes }) => Array.isArray(outcomes),
  "/expression": ({ parts }) => Array.isArray(parts),
  "/expression/names": ({ variables, functions }) => Array.isArray(variables) && Array.isArray(functions),
  "/impact": ({ classes, changes }) => isObject(classes) && Array.isArray(changes),
  "/logging": ({ filters, modules }) => Array.isArray(filters) && Array.isArray(modules),
  "/overview": ({ workers, traffic }) => Array.isArray(workers) && isObject(traffic),
  "/page-token": ({ token }) => typeof token === "string",
  "/probe/": ({ probes }) => Array.isArray(probes),
  "/requests": ({ records }) => Array.isArray(records),
  "/routes": ({ routes }) => Array.isArray(routes),
  "/routes/": ({ places }) => isObject(places),
  "/requests/": ({ records }) => Array.isArray(records),
};

/** Whether a value that was received is an answer of this endpoint. */
export function isAnswer<Endpoint extends keyof AdminAnswers>(
  endpoint: Endpoint,
  value: unknown,
): value is AdminAnswers[Endpoint] {
  return isObject(value) && MARKS[endpoint](value);
}

/** The parameters of a query, without those that are absent, empty or false. */
export function queryOf(words: object): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(words))
    if (value !== undefined && value !== "" && value !== false) query.set(name, String(value));
  return query;
}
