import type { Backend, TargetedPolicy } from "../../ir/ir.ts";
import type { PolicySet } from "../../ir/policies.ts";
import type { FrontendInput } from "../schema/frontend.ts";
import type { CalledTargets } from "./called-targets.ts";
import type { Path, Report } from "./report.ts";
import type { Sources } from "./sources.ts";
import type { TargetContext } from "./target.ts";

export type { Path, Report };

/** What `policies[]` attaches to each kind of target (reference 1.9), for their routes or, with backends, for those. */
export interface Targeted {
  readonly all: readonly TargetedPolicy[];
  /** For all routes of a listener: what targets its gateway, then what targets the listener itself. */
  readonly forListener: (gateway: string, namespace: string, listener: string) => PolicySet;
  /** For one route: what targets the route, then what targets its rule. */
  readonly forRoute: (name: string, namespace: string, ruleName: string | undefined) => PolicySet;
  readonly forBackend: (name: string) => PolicySet;
}

/** What translating one part needs to know of the others. */
export interface Context extends TargetContext {
  /** Named backends by name. */
  readonly backends: ReadonlyMap<string, Backend>;
  readonly targeted: Targeted;
  readonly calledTargets: CalledTargets;
  /** What listeners with TLS that say nothing else have in common. */
  readonly tls: NonNullable<FrontendInput["tls"]>;
  /** Texts outside of the configuration that it names. */
  readonly sources: Sources;
}
