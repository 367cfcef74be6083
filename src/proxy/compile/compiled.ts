/** The runtime form of one configuration in one worker: what a request walks through. */
import type { PendingChallenges } from "../../acme/challenges.ts";
import type { Milliseconds } from "../../base/durations.ts";
import type { Networks } from "../../base/ip-address.ts";
import type { Origin } from "../../base/origin.ts";
import type { Listening } from "../../ir/bind-addresses.ts";
import type { Frontend, Listener } from "../../ir/ir.ts";
import type { PolicySources } from "../../ir/origins.ts";
import type { Rules } from "../../policies/authorization/rules.ts";
import type { CompiledChain } from "../../policies/compile.ts";
import type { PolicyEnvironment } from "../../policies/contract/deps.ts";
import type { NetworkAuthorizer } from "../../policies/ext-authz/network.ts";
import type { AccessLists } from "../../policies/ip-access/access-lists.ts";
import type { PolicySet } from "../../policies/policy-set.ts";
import type { AccessLogEdits } from "../../telemetry/access-log-edits.ts";
import type { Count } from "../../telemetry/metrics.ts";
import type { TlsTerminator } from "../../tls/tls-terminator.ts";
import type { Balancer } from "../../upstream/balancers/balancer.ts";
import type { AffinityKey } from "../../upstream/balancers/rendezvous.ts";
import type { OutlierDetector } from "../../upstream/calls/outlier.ts";
import type { DynamicConnection, DynamicTarget } from "../../upstream/destinations/dynamic.ts";
import type { BackendCalls } from "../../upstream/endpoints/endpoints.ts";
import type { RetryBudget } from "../../upstream/endpoints/retry-budget.ts";
import type { Target } from "../../upstream/settings/target.ts";
import type { BodyCaptureOptions } from "../body/recorded-bodies.ts";
import type { Forwarding } from "../fields/forwarding.ts";
import type { ListenerTable, TcpRouteTable } from "../match/hosts.ts";
import type { Router } from "../match/router.ts";
import type { LogExport } from "../telemetry/log-export.ts";
import type { RequestTracing } from "../telemetry/request-tracing.ts";
import type { Provenance } from "./provenance.ts";
import type { SeriesCache } from "./series-cache.ts";
import type { Uses } from "./uses.ts";

export interface CompiledBind {
  readonly key: string;
  /** Of the configuration. */
  readonly generation: number;
  /** Where it listens, of the configuration. */
  readonly at: Listening;
  readonly port: number;
  readonly protocol: "http" | "tls" | "tcp" | "udp";
  readonly mode: "standard" | "internal";
  /** Addresses that may connect; undefined = all. */
  readonly access: AccessLists | undefined;
  /** Rules about who may connect; undefined = all clients may. */
  readonly network: Rules | undefined;
  /** Service that allows or denies connections after `network`; undefined = none. */
  readonly networkAuthorizer: NetworkAuthorizer | undefined;
  readonly accessLog: AccessLogEdits | undefined;
  /** Records of the access log for a collector. */
  readonly logExport: LogExport | undefined;
  /** Which requests leave spans; undefined = none. */
  readonly tracing: RequestTracing | undefined;
  /** Expressions record values of requests: in the access log, in spans or as labels of metrics. */
  readonly writesValues: boolean;
  /** Bodies that are recorded for what is read at the end of requests; undefined = none. */
  readonly recordedBodies: BodyCaptureOptions | undefined;
  readonly frontend: Frontend;
  /** Peers that may send a PROXY header; undefined = all. */
  readonly proxies: Networks | undefined;
  /** What requests to backends say about their origin. */
  readonly forwarding: Forwarding;
  readonly listeners: ListenerTable<CompiledListener>;
  /** Validations by http-01 that requests of any host may ask for; undefined = no listener orders certificates this way. */
  readonly challenges: PendingChallenges | undefined;
  /** The environment of policies that are compiled when routes delegate. */
  readonly policies: PolicyEnvironment;
  readonly groups: ReadonlyMap<string, Router<CompiledRoute>>;
  /** Where routes and policies were written. */
  readonly provenance: Provenance;
  /** Policy chains of routes in groups, by the keys of the routes that delegated to them; made on first use. */
  readonly merged: WeakMap<CompiledRoute, Map<string, CompiledChain>>;
  /** Counters of requests that reach no listener. */
  readonly series: SeriesCache;
}

export interface CompiledListener {
  readonly key: string;
  readonly name: string;
  readonly gateway: string;
  readonly protocol: Listener["protocol"];
  /** Ends TLS; undefined for plaintext and for TLS that passes through. */
  readonly terminator: TlsTerminator | undefined;
  /** Validations by tls-alpn-01; undefined = the listener orders no certificate this way. */
  readonly challenges: PendingChallenges | undefined;
  /** Addresses that may connect to a listener without HTTP; undefined = all. */
  readonly access: AccessLists | undefined;
  /** Routes of TCP and TLS listeners. */
  readonly tcpRoutes: TcpRouteTable<CompiledTcpRoute>;
  readonly policies: CompiledChain;
  readonly router: Router<CompiledRoute>;
  /** Counters of requests that reach no route. */
  readonly series: SeriesCache;
}

export interface CompiledRoute {
  readonly key: string;
  readonly createdAt: number;
  /** `<namespace>/<name>` */
  readonly label: string;
  /** The name of the rule within its route. */
  readonly rule: string | undefined;
  readonly policies: CompiledChain;
  /** What `policies` was compiled from, for merging with the routes that delegate to this one. */
  readonly policySet: PolicySet;
  /** Where those were written; absent kinds: at the route itself. */
  readonly sources?: PolicySources;
  readonly backends: readonly CompiledBackend[];
  readonly totalWeight: number;
  /** The backend of a route that has exactly one, not a route group: saves the choice and a cache miss. */
  readonly only: CompiledBackend | undefined;
  /** Counters of requests that reach no backend, such as direct responses. */
  readonly series: SeriesCache;
  /** Of its text in the packed configuration. */
  readonly digest: string;
  /** For the next configuration, if it has the same route. */
  readonly uses: Uses;
}

export interface CompiledTcpRoute {
  /** `<namespace>/<name>` */
  readonly label: string;
  readonly origin: Origin | undefined;
  readonly hostnames: readonly string[];
  readonly backends: readonly CompiledBackend[];
  readonly totalWeight: number;
}

/** Limits on retries to a backend. */
export interface RetryLimits {
  /** Maximum of `calls.retrying`, over all workers; may be Infinity. */
  readonly max: number;
  readonly budget: RetryBudget | undefined;
  /** Counts the retries that the limits prevented. */
  readonly overflows: Count;
}

export interface CompiledBackend {
  readonly key: string;
  readonly weight: number;
  readonly target: Target;
  readonly policies: CompiledChain;
  /** Milliseconds for each attempt, in place of the route's `timeout.backendRequestTimeout`. */
  readonly requestTimeout: Milliseconds | undefined;
  /** Chooses an endpoint; undefined for targets that have none (`routeGroup`, `dynamic`, unusable ones). */
  readonly balancer: Balancer | undefined;
  readonly calls: BackendCalls;
  readonly retries: RetryLimits | undefined;
  /** Set for backends with `health`. */
  readonly outliers: OutlierDetector | undefined;
  /** Set for backends with `sessionAffinity`. */
  readonly affinity: AffinityKey | undefined;
  /** Set for `dynamic` backends that do not take the authority of the request. */
  readonly dynamic: DynamicTarget | undefined;
  /** Set for `dynamic` backends whose policies say how to connect. */
  readonly connection: DynamicConnection | undefined;
  readonly series: SeriesCache;
}
