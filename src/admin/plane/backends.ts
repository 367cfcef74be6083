/** Backends with their endpoints, as the admin server shows them. */
import type { Origin } from "../../base/origin.ts";
import type { EvictionCause, HealthChange } from "../../telemetry/health-history.ts";
import type { ProbeResult } from "../../telemetry/probe-result.ts";

/** Which backends to show. */
export interface BackendsQuery {
  /** Part of the key, the name or the address of an endpoint. */
  readonly find?: string | undefined;
  /** Only backends with an endpoint that gets no requests because it is evicted or unhealthy. */
  readonly failing?: boolean;
  /** How many at most. */
  readonly limit: number;
}

export interface BackendsAnswer {
  /** Number of the configuration whose backends these are. */
  readonly generation: number;
  readonly backends: Shortened<BackendView>;
}

/** The first elements of a list. */
export interface Shortened<T> {
  /** Number of elements of the whole list. */
  readonly total: number;
  readonly shown: readonly T[];
}

/** A backend or a service. */
export interface BackendView {
  /** Names it in `/backends/<key>`: `/api` for a named one, `service/<namespace>/<hostname>` for a service. */
  readonly key: string;
  /** As metrics and the access log call it. */
  readonly name: string;
  readonly kind: "static" | "unix" | "service" | "pool" | "dynamic" | "internal" | "invalid";
  readonly origin?: Origin;
  /** Requests that were sent to it since the gateway started. */
  readonly requests: number;
  /** How many of its endpoints get no requests. */
  readonly failing: number;
  /** Those that get no requests come first. Empty for kinds whose addresses the configuration does not name. */
  readonly endpoints: Shortened<EndpointView>;
  readonly routes: Shortened<RouteView>;
}

/** What probes of the endpoints of a backend found, just now. */
export interface ProbeAnswer {
  /** Of the backend, as in `BackendView`. */
  readonly key: string;
  /** How many endpoints it has. */
  readonly endpoints: number;
  /** At most 16, those that get no requests first. Empty if no worker knows an endpoint, because no route leads to it. */
  readonly probes: readonly EndpointProbe[];
}

/** A probe of an endpoint; from another replica, its result may differ. */
interface EndpointProbe extends ProbeResult {
  /** Where `tgctl ui` merges the answers of replicas: the pod that probed. */
  readonly pod?: string;
}

/** A route that sends requests to a backend. */
interface RouteView {
  readonly key: string;
  /** `<namespace>/<name>`. */
  readonly name: string;
  readonly rule?: string;
  readonly weight: number;
  /** Of the entry in the route. */
  readonly origin?: Origin;
}

/** Whether an endpoint gets no requests, although a route leads to it. */
export function isFailing({ state }: EndpointView): boolean {
  return state === "evicted" || state === "unhealthy" || state === "notReady" || state === "unresolved";
}

/** An address of a backend. Numbers are sums over all workers, averages are weighted by requests. */
export interface EndpointView {
  /** `10.0.0.7:8080` or `unix:/path`; for a workload with several ports, those of the service. */
  readonly addresses: readonly string[];
  /**
   * `unused`: no worker knows it, because no route leads to it; `pending`: it gets requests, and its first active check has not ended;
   * `unresolved`: its name has no address, so its requests fail; `notReady`: service discovery says that it is unhealthy, so it gets no requests.
   */
  readonly state: "healthy" | "evicted" | "unhealthy" | "unresolved" | "notReady" | "pending" | "unused";
  /** In what `tgctl ui` makes of the answers of replicas: the pods of those that see this state, where others do not. */
  readonly stateAt?: readonly string[];
  readonly evicted?: {
    /** When it gets requests again, ms since the epoch. */
    readonly until: number;
    readonly cause?: EvictionCause;
  };
  /** Its active health check. */
  readonly check?: {
    /** Why it is unhealthy. */
    readonly reason?: string;
    readonly passed: number;
    readonly failed: number;
  };
  /** The last changes, the latest first; none are known from before the start of the gateway. */
  readonly changes: readonly HealthChange[];
  /** Moving average over requests: 1 = all succeeded, 0 = none did. */
  readonly health: number;
  /** Seconds until a response was complete: moving average over requests that succeeded; 0: none has. */
  readonly latency: number;
  /** Requests in progress. */
  readonly active: number;
  readonly requests: number;
  /** Requests that failed since the last one that succeeded. */
  readonly consecutiveFailures: number;
  /** Share of requests among the endpoints that are equally near, in relation to theirs. */
  readonly weight: number;
  /** It gets requests only while no endpoint that is not a backup takes any. Absent: false. */
  readonly backup?: true;
  /** Why it gets requests only while nearer endpoints take none, or, with the mode `Strict`, none at all. */
  readonly behind?: string;
  /** Only of services. */
  readonly workload?: {
    readonly name: string;
    readonly region?: string;
    readonly zone?: string;
    readonly node?: string;
    /** 0: it gets requests first; higher: those that nearer ones cannot take; absent: it gets none. */
    readonly rank?: number;
  };
  /** Absent: no worker has opened a connection yet. */
  readonly pool?: {
    /** Connections in use, unused ones, and those being opened. */
    readonly active: number;
    readonly idle: number;
    readonly connecting: number;
    /** Requests that wait for a connection. */
    readonly waiting: number;
  };
  /** The latest lookup of its host name. Absent for an IP address, and until something connects. */
  readonly name?: {
    /** The name, if the endpoint is one of its addresses. */
    readonly host?: string;
    /** In use; empty: none was found. */
    readonly addresses: readonly string[];
    /** When they were found, ms since the epoch. */
    readonly foundAt?: number;
    /** It gets requests only while no endpoint of the name with a lower rank takes any. Absent: 0. */
    readonly rank?: number;
    /** So many further addresses of the name are not used, because there are too many. */
    readonly omitted?: number;
    /** Why the last lookup found none: earlier addresses stay in use. */
    readonly error?: string;
  };
  /**
   * There are too many endpoints for the table in which workers count requests together: each counts alone, and balances and limits by what
   * it counts. `limits` are then sums.
   */
  readonly perWorker?: true;
  /** Of all workers together. Of `connections`, each worker has a part: one that has used it up lets requests wait although others have not. */
  readonly limits?: {
    readonly connections: number;
    readonly waiting: number;
    /** Requests in progress; null = no limit. */
    readonly requests: number | null;
    /** Requests that were rejected because of these limits. */
    readonly rejected: number;
  };
}
