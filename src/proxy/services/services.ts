/** What the worker supplies to everything in this room. */
import type { Logger } from "../../base/log.ts";
import type { OwnSockets } from "../../base/own-sockets.ts";
import type { Unknowns } from "../../cel/index.ts";
import type { Egress } from "../../net/egress.ts";
import type { SocketBudget } from "../../net/socket-budget.ts";
import type { ThreadEnvironment } from "../../policies/contract/deps.ts";
import type { Recorder } from "../../recorder/recorder.ts";
import type { AccessLog } from "../../telemetry/access-log.ts";
import type { CustomLabels } from "../../telemetry/custom-labels.ts";
import type { Histogram, Metrics } from "../../telemetry/metrics.ts";
import type { EntrySink } from "../../telemetry/otlp/messages.ts";
import type { TicketSecrets } from "../../tls/ticket-keys.ts";
import type { AssumedCertificate } from "../../tls/tls-terminator.ts";
import type { DynamicEndpoints } from "../../upstream/destinations/dynamic.ts";
import type { Workloads } from "../../upstream/discovery/discovery.ts";
import type { Locality } from "../../upstream/discovery/locality.ts";
import type { Endpoint } from "../../upstream/endpoints/endpoint.ts";
import type { Resolver } from "../../upstream/resolve/resolver.ts";
import type { Target } from "../../upstream/settings/target.ts";
import type { BufferBudget } from "../body/buffer-budget.ts";
import type { UnknownValues } from "../match/condition.ts";
import type { Overload } from "../overload/overload.ts";
import type { ExpressionShares } from "./expression-shares.ts";
import type { TraceLog } from "./trace-log.ts";
import type { Watchers } from "./watchers.ts";

/** Backends of a route, of which one is chosen by weight. */
export interface Split {
  /** Absent for routes of TCP and UDP. */
  readonly key?: string;
  /** `<namespace>/<name>` of the route. */
  readonly label: string;
  readonly backends: readonly { readonly key: string; readonly weight: number; readonly target: Target }[];
}

/** What every exchange of a worker needs besides the configuration; made once per thread. */
export interface Services {
  readonly metrics: Metrics;
  /** Labels of the request metrics that the configuration adds. */
  readonly customLabels: CustomLabels | undefined;
  readonly watchers: Watchers;
  /** Explains requests in the log, at the levels `debug` and `trace`. */
  readonly traceLog: TraceLog;
  /** The log of the data plane itself. */
  readonly log: Logger;
  /** Target `request`: one line for each request. */
  readonly accessLog: AccessLog;
  /** Records of what is over; undefined: the configuration turns them off, or this is a rehearsal. */
  readonly recorder: Recorder | undefined;
  /** Takes entries for collectors. */
  readonly exports: EntrySink;
  /** Header names (lower-case) whose values traces hide. */
  readonly sensitive: ReadonlySet<string>;
  /** What policies are compiled with. */
  readonly policies: ThreadEnvironment;
  /** `env` of every snapshot: podName, namespace, gateway in Kubernetes, else empty. */
  readonly env: Readonly<Record<string, string>>;
  /** Decides whether new work is accepted. */
  readonly overload: Overload;
  /** Limits of expressions. */
  readonly expressions: ExpressionShares;
  readonly sockets: SocketBudget;
  /** Workloads by their addresses, to identify clients. */
  readonly workloads: Workloads;
  /** Where this gateway runs, for the choice between near and far workloads. */
  readonly locality: Locality;
  /** Seconds from the call to the upstream's response head. */
  readonly upstreamCall: Histogram;
  /** The budget for bodies that policies read. */
  readonly buffers: BufferBudget;
  /** Secrets of TLS session tickets, in memory that all workers share. */
  readonly tickets: TicketSecrets;
  /** Uniform in [0, 1): the choice between weighted backends. */
  readonly random: () => number;
  /** The index of the backend that gets a request, in place of chance; only in rehearsals. */
  readonly chooseBackend?: (split: Split) => number;
  /** The certificate of a client that need not prove its key, with those between it and the CA; only in rehearsals. */
  readonly assumedCertificate?: AssumedCertificate;
  /** What expressions cannot know of a request; only in rehearsals. */
  readonly unknowns?: Unknowns;
  /** What is not known of the values that routes match on; only in rehearsals. */
  readonly unknownValues?: UnknownValues;
  readonly dynamic: DynamicEndpoints;
  /** Looks up host names of UDP backends; connection pools have their own reference to it. */
  readonly resolver: Resolver;
  /** Where this process listens; new ports are recorded here. */
  readonly own: OwnSockets;
  /** Decides which addresses may be connected to. */
  readonly egress: Egress;
  /** The endpoint of `internal` backends: the admin API in the main thread. Undefined: the configuration must not have such backends. */
  readonly internal: () => Endpoint | undefined;
}
