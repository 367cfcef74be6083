/** What backends say about how they are connected to. */
import type { Target } from "./target.ts";

export type KeyExchangeGroup = "X25519" | "P-256" | "P-384" | "X25519_MLKEM768";

export type HttpVersion = "HTTP/1.1" | "HTTP/2.0";

/** Reference 3.21, with the files already read (PEM text). */
export interface BackendTls {
  readonly cert?: string;
  readonly key?: string;
  readonly root?: string;
  readonly hostname?: string;
  readonly insecure: boolean;
  readonly insecureHost: boolean;
  /** Absent: the version of HTTP that is spoken. */
  readonly alpn?: readonly string[];
  readonly subjectAltNames?: readonly string[];
  /** In order of preference. Absent: the runtime's. */
  readonly keyExchangeGroups?: readonly KeyExchangeGroup[];
}

/** Reference 3.23; milliseconds. */
export interface BackendTcp {
  readonly connectTimeout?: number;
  readonly maxConnections?: number;
  readonly maxPendingRequests?: number;
  readonly keepalives?: { readonly enabled: boolean; readonly time: number; readonly interval?: number };
}

/** Reference 3.23: connections go through an HTTP proxy. */
export interface BackendTunnel {
  readonly proxy: Target;
  /** Value of Proxy-Authorization. */
  readonly authorization?: string;
  /** TLS to the proxy itself. */
  readonly tls?: BackendTls;
}

/** Reference 3.23; milliseconds. */
export interface BackendHttp {
  readonly version?: HttpVersion;
  readonly requestTimeout?: number;
  readonly maxConnections?: number;
  readonly maxPendingRequests?: number;
}
