import type { CelEnvironment } from "../../cel/index.ts";
import type { Backend, Listener, Route, TargetedPolicy } from "../../ir/ir.ts";
import type { PhaseLevels, PolicyLevel } from "../../ir/origins.ts";
import type { LeafCaching } from "../../tls/tls-settings.ts";
import type { CalledTargets } from "../../translation/called-targets.ts";
import type { FrontendInput } from "../../translation/schema/frontend.ts";
import type { TargetContext } from "../../translation/target.ts";
import type { Service, Workload } from "../../upstream/discovery/discovery.ts";
import type { Locality } from "../../upstream/discovery/locality.ts";
import type { FileSources } from "./file-sources.ts";

/** The endpoints of a backend, in the form in which balancers know those of a service. */
interface Pool {
  readonly service: Service;
  readonly workloads: readonly Workload[];
}

/** A listener of `gateways`: the name of its entry, and its own if the entry lists its listeners. */
export interface EntryName {
  readonly gateway: string;
  readonly listener?: string;
}

/** Which listener a policy may mean. */
export interface ListenerPlace
  extends Pick<Listener, "key" | "name" | "gatewayName" | "gatewayNamespace" | "protocol"> {
  readonly port: number;
  /** Absent: it is one of `binds`. */
  readonly entry?: EntryName;
}

/** Which route a policy may mean. */
export interface RoutePlace extends Pick<Route, "name" | "namespace" | "ruleName"> {
  readonly kind: "HTTPRoute" | "TCPRoute";
}

/**
 * What `policies[]` attaches to each kind of target (docs/configuration.md#targetedpolicy); in a level the narrower target has won,
 * kind by kind.
 */
export interface Targeted {
  readonly all: readonly TargetedPolicy[];
  /** For a listener with all its routes and their backends: what targets the gateway, then its port, then the listener. */
  readonly forListener: (listener: ListenerPlace) => PhaseLevels;
  /** For a route and its backends: what targets the route, then what targets its rule. */
  readonly forRoute: (route: RoutePlace) => PhaseLevels;
  readonly forBackend: (name: string) => PolicyLevel;
  /** For every use of a service (`<namespace>/<hostname>`), then of that port of it. */
  readonly forService: (service: string, port: number) => PolicyLevel;
}

/** The context for translating one part: facts about the other parts. */
export interface Context extends TargetContext {
  /** The names that expressions of this configuration may use. */
  readonly cel: CelEnvironment;
  /** Where this process runs, as far as it knows. */
  readonly locality: Locality;
  /** Named backends by name. */
  readonly backends: ReadonlyMap<string, Backend>;
  /** The policies that are written inline at the named backends. */
  readonly backendPolicies: ReadonlyMap<string, PolicyLevel>;
  readonly targeted: Targeted;
  /** Collects the listeners, by their keys. */
  readonly listeners: Map<string, ListenerPlace>;
  /** Collects the policies that are written inline at listeners, for the dump. */
  readonly inline: TargetedPolicy[];
  /** Collects the endpoints of backends. */
  readonly pools: Pool[];
  readonly calledTargets: CalledTargets;
  /** TLS defaults of listeners. */
  readonly tls: NonNullable<FrontendInput["tls"]>;
  /** Of listeners that make their certificates. */
  readonly leafCaching: LeafCaching;
  /** Reads the files and documents that the configuration names. */
  readonly sources: FileSources;
}
