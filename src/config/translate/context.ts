import type { Backend } from "../../ir/ir.ts";
import type { PolicySet } from "../../ir/policies.ts";
import type { Problem } from "../document.ts";

export type Path = readonly PropertyKey[];

/** What translating one part needs to know of the others. */
export interface Context {
  report(path: Path, problem: Problem): void;
  /** Named backends by name. */
  readonly backends: ReadonlyMap<string, Backend>;
  readonly routeGroups: ReadonlySet<string>;
  /** Keys (`namespace/hostname`) of services with their ports. */
  readonly services: ReadonlyMap<string, Readonly<Record<string, number>>>;
  /** Route-phase policies that targets attach: to all routes of a listener, or to one route. */
  readonly forListener: (gateway: string, namespace: string, listener: string) => PolicySet;
  readonly forRoute: (name: string, namespace: string, ruleName: string | undefined) => PolicySet;
  /** Reads a file that the configuration names; a problem is reported at `path`. */
  readFile(path: Path, file: string): string;
}
