/**
 * The frozen runtime configuration: plain data that crosses threads by structured clone. Both the configuration file and
 * Kubernetes objects translate to it; workers compile it. All times are milliseconds, all sizes bytes.
 */
import type { KeyExchangeGroup } from "./connections.ts";
import type { NetworkExtAuthz, PolicySet } from "./policies.ts";
import type { Target } from "./target.ts";
import type { AccessLog, Tracing } from "./telemetry.ts";

export type { Target } from "./target.ts";
export type * from "./telemetry.ts";

export interface Ir {
  readonly binds: readonly Bind[];
  readonly routeGroups: readonly RouteGroup[];
  readonly backends: readonly Backend[];
  readonly services: readonly Service[];
  readonly workloads: readonly Workload[];
  /** Definitions of functions that the expressions of this configuration may call (reference 1.3); absent: none. */
  readonly customFunctions?: string;
  /** Policies attached to targets (reference 1.9 and 1.10), kept for the dump; already merged into the `policies` they apply to. */
  readonly targeted: readonly TargetedPolicy[];
}

/** One address, which is listened on unless it is internal. */
export interface Bind {
  /** `bind/<port>`; internal: `bind/internal/<port>`, or `bind/internal` without port. */
  readonly key: string;
  /** Host to listen on: `::` (dual stack) or `0.0.0.0`. */
  readonly host: string;
  /** 0 asks the system for a free port; the runtime reports the one it got. */
  readonly port: number;
  readonly protocol: "http" | "tls" | "tcp";
  readonly tunnelProtocol: "direct" | "proxy" | "connect" | "hboneWaypoint" | "hboneGateway";
  /** `internal`: no socket; serves what comes out of tunnels to its port, or with port 0 to ports that no bind has. */
  readonly mode: "standard" | "internal";
  readonly frontend: Frontend;
  readonly listeners: readonly Listener[];
}

/** `frontendPolicies` (reference 1.10): the limits of a connection, with every default filled in, and what was asked for. */
export interface Frontend {
  /** Request body buffer and trace capture bound. Default 2 MiB. */
  readonly maxBufferSize: number;
  /** Bytes of bodies that a worker holds for policies altogether; more: 503. Absent: 64 MiB. */
  readonly maxBufferedBytes?: number;
  /** Bytes of request line and header fields together. Default 61440. */
  readonly maxHeadSize: number;
  /** Default 100. */
  readonly maxHeaders: number;
  /** Bytes of the request target. Default 8192 (more: 414). */
  readonly maxTargetSize: number;
  /** Largest request body, 0 = unlimited (default). More: 413. */
  readonly maxRequestBodySize: number;
  /** A keep-alive connection without a request is closed after this. Default 600000. */
  readonly idleTimeout: number;
  /** From the first byte of a head to its end. Default 60000 (never above idleTimeout). Late: 408. */
  readonly headerReadTimeout: number;
  /** A body, in either direction, that makes no progress for this long ends the exchange. Default 300000. */
  readonly streamIdleTimeout: number;
  /** Bytes per second that a request body must average after a grace of 10 s. Default 240; 0 = off. */
  readonly minBodyRate: number;
  /** Accepted connections per worker; more are closed at once. Default 50000. */
  readonly maxConnections: number;
  /** Graceful close after this age; 0 = off (default). */
  readonly maxConnectionDuration: number;
  readonly headerCase: "lowercase" | "preserve";
  /** How request fields with `_` in their names are handled. Absent: `allow`. */
  readonly underscores?: "allow" | "drop" | "reject";
  /** What requests say of where they come from. Absent: `replace`, and no proxy is trusted. */
  readonly forwarded?: Forwarded;
  /** Absent: `x-request-id`, `preserve`. */
  readonly requestId?: RequestId;
  readonly keepalives: Keepalives;
  /** Connections begin with a PROXY header. Absent: none is looked for. */
  readonly proxyProtocol?: ProxyProtocol;
  /**
   * `route`: CONNECT is routed like other requests; `tunnel`: connections speak nothing else, and what comes out of a tunnel
   * goes to the bind of its port. Absent: CONNECT is refused.
   */
  readonly connect?: "route" | "tunnel";
  /** From the accepted connection to the end of its TLS handshake. Absent: 15000. */
  readonly handshakeTimeout?: number;
  /** Who may connect at all; others are cut off. */
  readonly networkAuthorization?: readonly NetworkRule[];
  /** The service that is asked whether a client may connect, after `networkAuthorization`. */
  readonly networkExtAuthz?: NetworkExtAuthz;
  /** What requests and connections of this bind leave in the access log; absent: everything. */
  readonly accessLog?: AccessLog;
  /** Which requests leave spans, and where they go; absent: none does. */
  readonly tracing?: Tracing;
}

/** A condition on a connection: CEL over `source`, `destination` and `env`. */
export interface NetworkRule {
  readonly mode: "allow" | "deny" | "require";
  readonly expression: string;
}

/** `frontendPolicies.http.forwarded`. */
export interface Forwarded {
  readonly mode: "replace" | "append" | "off";
  /** IP addresses and networks in CIDR notation. */
  readonly trustedProxies: readonly string[];
}

/** `frontendPolicies.http.requestId`. */
export interface RequestId {
  /** Lower-case. */
  readonly header: string;
  readonly mode: "preserve" | "generate" | "off";
}

/** `frontendPolicies.proxyProtocol`. */
export interface ProxyProtocol {
  readonly version: "v1" | "v2" | "all";
  /** `optional`: connections without a header are served as they are. */
  readonly mode: "strict" | "optional";
}

export interface Keepalives {
  readonly enabled: boolean;
  readonly time: number;
}

export interface Listener {
  /** File: `<ns>/<gateway>/bind/<port>/<listener>` for binds, `gateway/<gateway>[/<listener>]` for gateways. */
  readonly key: string;
  /** Of gateways `<gateway>[/<listener>]`, as routes refer to it. */
  readonly name: string;
  readonly gatewayName: string;
  readonly gatewayNamespace: string;
  /** Lower-case; `` or `*` = any; `*.example.com` = wildcard. */
  readonly hostname: string;
  readonly protocol: "HTTP" | "HTTPS" | "TCP" | "TLS";
  readonly tls?: TlsServer;
  readonly policies: PolicySet;
  readonly routes: readonly Route[];
  readonly tcpRoutes: readonly TcpRoute[];
}

/** Server-side TLS with the files already read (PEM text). */
export interface TlsServer {
  readonly cert: string;
  readonly key: string;
  readonly clientCa?: string;
  readonly minVersion?: "TLSv1.2" | "TLSv1.3";
  readonly maxVersion?: "TLSv1.2" | "TLSv1.3";
  readonly cipherSuites?: readonly string[];
  /** In order of preference. Absent: the runtime's. */
  readonly keyExchangeGroups?: readonly KeyExchangeGroup[];
  /** Present: `cert` and `key` are a CA's, which signs a certificate for each name that clients ask for. */
  readonly dynamicCa?: LeafCaching;
}

/** How long a listener keeps the certificates that its CA has signed, in each worker. */
export interface LeafCaching {
  readonly ttl: number;
  /** Names, at least 1. */
  readonly capacity: number;
}

export interface Route {
  /** `<listenerKey>/<ns>/<name>` */
  readonly key: string;
  readonly name: string;
  readonly namespace: string;
  readonly ruleName?: string;
  /** Lower-case; empty = any host. */
  readonly hostnames: readonly string[];
  /** The default is one path prefix `/`; a route without any matches no request. */
  readonly matches: readonly RouteMatch[];
  readonly policies: PolicySet;
  /** Those of them that stand at the route itself, for the dump; absent: all. */
  readonly inline?: PolicySet;
  readonly backends: readonly RouteBackend[];
}

export interface RouteMatch {
  readonly path: PathMatch;
  readonly method?: string;
  readonly headers: readonly ValueMatch[];
  readonly query: readonly ValueMatch[];
}

export type PathMatch =
  | { readonly type: "exact"; readonly value: string }
  | { readonly type: "pathPrefix"; readonly value: string }
  | { readonly type: "regex"; readonly value: string };

/** `name` of a header is lower-case or a pseudo header (`:method`, `:scheme`, `:authority`, `:path`); regex must match the whole value. */
export interface ValueMatch {
  readonly name: string;
  readonly type: "exact" | "regex";
  readonly value: string;
}

export interface RouteBackend {
  /** `/<routeKey>/backend<idx>`, or the key of a named backend (`/<name>`). */
  readonly key: string;
  readonly weight: number;
  readonly target: Target;
  readonly policies: PolicySet;
  /** Those of them that stand here, for the dump; absent: all. */
  readonly inline?: PolicySet;
}

export interface RouteGroup {
  readonly name: string;
  readonly routes: readonly Route[];
}

export interface TcpRoute {
  readonly key: string;
  readonly name: string;
  readonly namespace: string;
  readonly ruleName?: string;
  readonly hostnames: readonly string[];
  readonly backends: readonly RouteBackend[];
}

/** A named backend, referred to as `backend: /name`. */
export interface Backend {
  /** `/<name>` */
  readonly key: string;
  readonly name: string;
  readonly target: Target;
  readonly policies: PolicySet;
  /** Those of them that stand here, for the dump; absent: all. */
  readonly inline?: PolicySet;
}

/** A service-discovery object; key `<namespace>/<hostname>`. Field names as in the dump (reference 4.4). */
export interface Service {
  readonly name: string;
  readonly namespace: string;
  readonly hostname: string;
  readonly vips: readonly string[];
  /** service port → target port */
  readonly ports: Readonly<Record<string, number>>;
  readonly appProtocols?: Readonly<Record<string, string>>;
  readonly loadBalancer?: LoadBalancer;
}

/** Which workloads of a service are preferred (reference 3.28). */
export interface LoadBalancer {
  readonly routingPreferences: readonly Preference[];
  readonly mode: "Standard" | "Strict" | "Failover" | "Passthrough";
  /** `AllowAll`: also workloads whose status is not healthy. */
  readonly healthPolicy: "OnlyHealthy" | "AllowAll";
}

/** In what a workload may be near. */
export type Preference = "region" | "zone" | "subzone" | "node" | "cluster" | "network";

export interface Workload {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  readonly workloadIps: readonly string[];
  readonly hostname?: string;
  readonly network?: string;
  readonly node?: string;
  readonly clusterId?: string;
  readonly status: "healthy" | "unhealthy";
  readonly capacity: number;
  readonly locality?: { readonly region?: string; readonly zone?: string; readonly subzone?: string };
  /** service key (`<namespace>/<hostname>`) → service port → workload port */
  readonly services: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** From here on only shown. */
  readonly serviceAccount?: string;
  readonly trustDomain?: string;
  readonly workloadName?: string;
  readonly workloadType?: string;
  readonly canonicalName?: string;
  readonly canonicalRevision?: string;
}

export interface TargetedPolicy {
  readonly key: string;
  readonly name: { readonly kind?: string; readonly name: string; readonly namespace: string } | null;
  readonly target: Readonly<Record<string, unknown>>;
  /** The policy as the dump shows it (reference 4.4 `policies[].policy`). */
  readonly policy: Readonly<Record<string, unknown>>;
}
