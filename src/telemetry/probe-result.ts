/** What a probe sends to an endpoint: an active health check of its backend, or only a connection. */
export type ProbeSent =
  /** `path`: without its query; `host`: absent if it is the name or address of the endpoint. */
  | { readonly type: "http"; readonly path: string; readonly host?: string }
  /** `grpc.health.v1.Health/Check`; `service`: empty for the server as a whole. */
  | { readonly type: "grpc"; readonly service: string }
  | { readonly type: "tcp" }
  /** A connection with its TLS handshake. */
  | { readonly type: "tls" };

/** What came back of one probe. */
export interface ProbeResult {
  /** `10.0.0.7:8080` or `unix:/path`. */
  readonly address: string;
  readonly sent: ProbeSent;
  readonly healthy: boolean;
  /** The status of an HTTP response, or that of a gRPC service, such as `NOT_SERVING`. Absent: none came. */
  readonly status?: number | string;
  /** Why the endpoint is not healthy. */
  readonly reason?: string;
  /** Milliseconds. */
  readonly duration: number;
}
