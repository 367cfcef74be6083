/** Settings of the connections to a backend and of the choice among its endpoints. Times are milliseconds. */
import type { Milliseconds } from "../../base/durations.ts";
import type { BackendTls } from "../../tls/tls-settings.ts";
import type { Target } from "./target.ts";

export type HttpVersion = "HTTP/1.1" | "HTTP/2.0";

/** `tcp` (docs/policies/tcp.md); milliseconds. */
export interface BackendTcp {
  readonly connectTimeout?: Milliseconds | undefined;
  readonly maxConnections?: number | undefined;
  readonly maxPendingRequests?: number | undefined;
  readonly keepalives?:
    | { readonly enabled: boolean; readonly time: Milliseconds; readonly interval?: Milliseconds | undefined }
    | undefined;
}

/** `backendTunnel` (docs/policies/backend-tunnel.md): connections go through an HTTP proxy. */
export interface BackendTunnel {
  readonly proxy: Target;
  /** Value of Proxy-Authorization. */
  readonly authorization?: string | undefined;
  /** TLS to the proxy itself. */
  readonly tls?: BackendTls | undefined;
}

/** `http` (docs/policies/http.md); milliseconds. */
export interface BackendHttp {
  readonly version?: HttpVersion | undefined;
  readonly requestTimeout?: Milliseconds | undefined;
  readonly maxConnections?: number | undefined;
  readonly maxPendingRequests?: number | undefined;
  readonly maxRequests?: number | undefined;
  readonly maxRetries?: number | undefined;
}

/** `health` (docs/policies/health.md). */
export interface Health {
  /** CEL over request and response: true = the call has failed. */
  readonly unhealthyExpression?: string | undefined;
  /** Absent: nothing is evicted. */
  readonly eviction?: Eviction | undefined;
  /** Absent: endpoints are not probed. */
  readonly active?: ActiveHealthCheck | undefined;
}

/** Probes of endpoints: exactly one of `http`, `tcp` and `grpc`. */
export interface ActiveHealthCheck {
  readonly http?: HttpHealthCheck | undefined;
  /** A connection, with its TLS handshake if the backend has `backendTLS`. */
  readonly tcp?: object | undefined;
  /** `grpc.health.v1.Health/Check`; `` asks for the server as a whole. */
  readonly grpc?: { readonly service: string } | undefined;
  /** Default: the port of the endpoint. */
  readonly port?: number | undefined;
  readonly interval: Milliseconds;
  readonly timeout: Milliseconds;
  /** Probes in a row. */
  readonly unhealthyThreshold: number;
  readonly healthyThreshold: number;
}

export interface HttpHealthCheck {
  /** With the query. */
  readonly path: string;
  /** Default: the name or address of the endpoint. */
  readonly host?: string | undefined;
  /** Default: 200 to 399. */
  readonly expectedStatuses?: readonly number[] | undefined;
}

export interface Eviction {
  /** Milliseconds. */
  readonly duration?: Milliseconds | undefined;
  /** From 0 to 1. */
  readonly restoreHealth?: number | undefined;
  readonly consecutiveFailures?: number | undefined;
  /** From 0 to 1. */
  readonly healthThreshold?: number | undefined;
}

/** `sessionAffinity` (docs/policies/session-affinity.md). */
export interface SessionAffinity {
  /** CEL over the request for a string or bytes. */
  readonly source: string;
}

/** Limit of retries by their share of the requests; times in milliseconds. */
export interface RetryBudgetSettings {
  /** Of all requests in `interval`, retries included. */
  readonly percent: number;
  readonly interval: Milliseconds;
  /** This many retries are allowed whatever their share. */
  readonly minRetryRate: { readonly count: number; readonly interval: Milliseconds };
}

/** What users write among the policies of a backend for connection pools and balancers to read. */
export interface UpstreamSettings {
  readonly backendTLS: BackendTls;
  readonly http: BackendHttp;
  readonly tcp: BackendTcp;
  readonly backendTunnel: BackendTunnel;
  readonly health: Health;
  readonly sessionAffinity: SessionAffinity;
  readonly retryBudget: RetryBudgetSettings;
}

export type SettingKind = keyof UpstreamSettings;
