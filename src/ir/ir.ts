/**
 * The frozen runtime configuration: plain data that crosses threads by structured clone. Both the configuration file and
 * Kubernetes objects translate to it; workers compile it. All times are milliseconds, all sizes bytes.
 */
import type { ManagedCertificate } from "../acme/settings.ts";
import type { Origin } from "../base/origin.ts";
import type { Path } from "../base/paths.ts";
import type { ConnectionLimits } from "../http/stream.ts";
import type { NetworkExtAuthz } from "../policies/ext-authz/network-schema.ts";
import type { IpAccess } from "../policies/ip-access/schema.ts";
import type { PolicySet } from "../policies/policy-set.ts";
import type { CalledService } from "../policies/schema/call.ts";
import type { LogFields, SamplingRules } from "../telemetry/settings.ts";
import type { TlsServer } from "../tls/tls-settings.ts";
import type { Service, Workload } from "../upstream/discovery/discovery.ts";
import type { Target } from "../upstream/settings/target.ts";
import type { PolicySources } from "./origins.ts";

export interface Ir {
  readonly binds: readonly Bind[];
  readonly routeGroups: readonly RouteGroup[];
  readonly backends: readonly Backend[];
  readonly services: readonly Service[];
  readonly workloads: readonly Workload[];
  /**
   * Definitions of functions that the expressions of this configuration may call (docs/expressions.md#custom-functions); absent:
   * none.
   */
  readonly customFunctions?: string;
  /**
   * Policies attached to targets (docs/configuration.md#targetedpolicy, docs/configuration.md#frontendpolicies), kept for the
   * dump; already merged into the `policies` they apply to.
   */
  readonly targeted: readonly TargetedPolicy[];
}

/** One address, which is listened on unless it is internal. */
export interface Bind {
  /**
   * `bind/<port>`, of UDP `bind/udp/<port>`; internal: `bind/internal/<port>`, or `bind/internal` without port. With addresses, they
   * precede the port: `bind/127.0.0.1:8080`, `bind/unix:/run/app.sock`.
   */
  readonly key: string;
  /** Host to listen on: `::` (dual stack) or `0.0.0.0`. */
  readonly host: string;
  /** Where it listens instead of `host`: IP addresses and `unix:/path` (bind-addresses.ts). Absent: only on `host`. */
  readonly addresses?: readonly string[];
  /** Permissions of the files of Unix sockets. Absent: 0o600. */
  readonly socketMode?: number;
  /** 0 asks the system for a free port, the runtime reports the one it got; also 0 for a bind on nothing but Unix sockets. */
  readonly port: number;
  /** A bind of TCP and one of UDP may have the same port. */
  readonly protocol: "http" | "tls" | "tcp" | "udp";
  readonly tunnelProtocol: "direct" | "proxy" | "connect" | "hboneWaypoint" | "hboneGateway";
  /** `internal`: no socket; serves connections in tunnels to its port, or with port 0 to ports without a bind. */
  readonly mode: "standard" | "internal";
  readonly frontend: Frontend;
  readonly listeners: readonly Listener[];
}

/**
 * `frontendPolicies` (docs/configuration.md#frontendpolicies): the limits of a connection, with every default filled in, and the
 * features that are configured.
 */
export interface Frontend extends ConnectionLimits {
  /** Request body buffer and trace capture bound. Default 2 MiB. */
  readonly maxBufferSize: number;
  /** Total bytes of bodies that a worker buffers for policies; more: 503. Absent: 64 MiB. */
  readonly maxBufferedBytes?: number;
  /** Accepted connections per worker; more are closed at once. Default 50000. */
  readonly maxConnections: number;
  /** Fields that say where a request comes from. Absent: `replace`, and no proxy is trusted. */
  readonly forwarded?: Forwarded;
  /** Absent: `x-request-id`, `preserve`. */
  readonly requestId?: RequestId;
  readonly keepalives: Keepalives;
  /** Connections begin with a PROXY header. Absent: none is expected. */
  readonly proxyProtocol?: ProxyProtocol;
  /**
   * `route`: CONNECT is routed like other requests; `tunnel`: connections carry only CONNECT, and the connection in a tunnel goes
   * to the bind of its port. Absent: CONNECT is rejected.
   */
  readonly connect?: "route" | "tunnel";
  /** Limits of UDP binds. Absent: the defaults of its fields. */
  readonly udp?: UdpLimits;
  /** From the accepted connection to the end of its TLS handshake. Absent: 15000. */
  readonly handshakeTimeout?: number;
  /** Addresses that may connect; other connections are closed before anything else is read. */
  readonly ipAccess?: IpAccess;
  /** Who may connect; other connections are closed. */
  readonly networkAuthorization?: readonly NetworkRule[];
  /** The service that decides whether a client may connect, after `networkAuthorization`. */
  readonly networkExtAuthz?: NetworkExtAuthz;
  /** What the access log records of requests and connections of this bind; absent: everything. */
  readonly accessLog?: AccessLog;
  /** Which requests leave spans, and where they go; absent: none. */
  readonly tracing?: Tracing;
  readonly origins?: FrontendOrigins;
}

/** Where each field of `frontendPolicies` that is configured was written, by its name there; of `networkAuthorization` each rule. */
export type FrontendOrigins = { readonly [Field in FrontendField]?: readonly Origin[] };
type FrontendField =
  | "http"
  | "tcp"
  | "udp"
  | "tls"
  | "connect"
  | "ipAccess"
  | "networkAuthorization"
  | "networkExtAuthz"
  | "proxyProtocol"
  | "accessLog"
  | "tracing";

/** `frontendPolicies.udp`. */
interface UdpLimits {
  /** A session, which is a client's address and port, ends after this silence. Default 60000. */
  readonly idleTimeout: number;
  /** Per worker and bind. Default 10000. */
  readonly maxSessions: number;
  /** Bytes; larger datagrams are dropped. Default 65507, the most that UDP over IPv4 carries. */
  readonly maxDatagramSize: number;
}

/** `frontendPolicies.accessLog` (docs/configuration.md#accesslog). */
export interface AccessLog extends LogFields {
  /** Records of the same requests for a collector. Absent: the log only. */
  readonly otlp?: { readonly collector: Collector } & LogFields;
}

/** `frontendPolicies.tracing` (docs/configuration.md#tracing). */
export interface Tracing extends SamplingRules {
  readonly collector: Collector;
  /** Attribute name → CEL over request and response; `span.name` is the name of the span. */
  readonly attributes: Readonly<Record<string, string>>;
  /** Names of attributes that are left out. */
  readonly remove: readonly string[];
  /** Names of attributes and spans: those of the stable conventions of OpenTelemetry (the default), or those of the access log. */
  readonly semanticConventions?: "stable" | "old";
  /** CEL over request and response: only spans of requests for which it is true are exported. */
  readonly filter?: string;
}

/** A service that takes telemetry by OTLP. */
export interface Collector extends CalledService {
  readonly protocol: "grpc" | "http";
  /** Path of HTTP requests. */
  readonly path: string;
  /** Limit of one export, milliseconds. */
  readonly timeout: number;
  /** Attributes of the resource that all exported data comes from: name → CEL over `env`. */
  readonly resources: Readonly<Record<string, string>>;
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
  /** Addresses and networks of the proxies that may send the header. Absent: all. */
  readonly from?: readonly string[] | undefined;
}

interface Keepalives {
  readonly enabled: boolean;
  readonly time: number;
}

export interface Listener {
  /** File: `<ns>/<gateway>/bind/[udp/]<port>/<listener>` for binds, `gateway/<gateway>[/<listener>]` for gateways. */
  readonly key: string;
  /** For gateways `<gateway>[/<listener>]`, as routes refer to it. */
  readonly name: string;
  readonly gatewayName: string;
  readonly gatewayNamespace: string;
  /** Lower-case; `` or `*` = any; `*.example.com` = wildcard. */
  readonly hostname: string;
  readonly protocol: "HTTP" | "HTTPS" | "TCP" | "TLS" | "UDP";
  /** HTTPS; TLS without it passes through. */
  readonly tls?: TlsServer;
  /** The gateway orders the certificate of `tls`. */
  readonly acme?: ManagedCertificate;
  readonly origin?: Origin;
  readonly policies: PolicySet;
  readonly sources?: PolicySources;
  /** Where policies were written that others replace here. */
  readonly replaced?: PolicySources;
  readonly routes: readonly Route[];
  /** Routes of TCP, TLS and UDP: of those for one name the first is used. */
  readonly tcpRoutes: readonly TcpRoute[];
}

export interface Route {
  /** `<listenerKey>/<ns>/<name>`, in Kubernetes `<ns>/<name>.<rule, 2 digits>.http`. */
  readonly key: string;
  readonly name: string;
  readonly namespace: string;
  readonly ruleName?: string;
  /** Seconds since 1970. If two routes match equally well, the older one wins; absent: the key decides. */
  readonly createdAt?: number;
  /** A place in a file is kept apart when the route is packed, because it is not part of what the route does. */
  readonly origin?: Origin;
  /** Lower-case; empty = any host. */
  readonly hostnames: readonly string[];
  /** The default is one path prefix `/`; a route without any matches no request. */
  readonly matches: readonly RouteMatch[];
  readonly policies: PolicySet;
  /** Where policies were written; absent kinds: at the route itself, in `policies`. */
  readonly sources?: PolicySources;
  /** Where policies were written that others replace here. */
  readonly replaced?: PolicySources;
  /** The policies written on the route itself, for the dump; absent: all. */
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
  /** The field of the route where it is written; absent: its entry of `backends`, in Kubernetes of `backendRefs`. */
  readonly at?: Path;
  readonly target: Target;
  readonly policies: PolicySet;
  /** Where policies were written; absent kinds: here, in `policies`. */
  readonly sources?: PolicySources;
  /** Where policies were written that others replace here. */
  readonly replaced?: PolicySources;
  /** The policies written here, for the dump; absent: all. */
  readonly inline?: PolicySet;
}

export interface RouteGroup {
  readonly name: string;
  readonly origin?: Origin;
  readonly routes: readonly Route[];
}

export interface TcpRoute {
  readonly key: string;
  readonly name: string;
  readonly namespace: string;
  readonly ruleName?: string;
  /** Seconds since 1970, of a route of a cluster; decides the order of such routes (`compareRoutes`). */
  readonly createdAt?: number;
  readonly origin?: Origin;
  readonly hostnames: readonly string[];
  readonly backends: readonly RouteBackend[];
}

/** A named backend, referred to as `backend: /name`. */
export interface Backend {
  /** `/<name>`; of a TracegateBackend `/<namespace>/<name>`. */
  readonly key: string;
  readonly name: string;
  /** For a TracegateBackend. */
  readonly namespace?: string;
  readonly origin?: Origin;
  readonly target: Target;
  readonly policies: PolicySet;
  /** Where policies were written; absent kinds: here, in `policies`. */
  readonly sources?: PolicySources;
  /** Where policies were written that others replace here. */
  readonly replaced?: PolicySources;
  /** The policies written here, for the dump; absent: all. */
  readonly inline?: PolicySet;
}

export interface TargetedPolicy {
  readonly key: string;
  readonly name: { readonly kind?: string; readonly name: string; readonly namespace: string } | null;
  readonly target: Readonly<Record<string, unknown>>;
  readonly origin?: Origin;
  /** It takes precedence over policies of narrower targets. */
  readonly inheritance?: "override";
  /** The policy as the dump shows it (reference 4.4 `policies[].policy`). */
  readonly policy: Readonly<Record<string, unknown>>;
}
