/** Policies that restrict access and do not set inheritance, and the users who can therefore replace them. */
import { refKey } from "../../../kube/keys.ts";
import type { PolicyKind } from "../../../policies/policy-set.ts";
import { keysOf } from "../../../translation/shadow-policies.ts";
import type { Read } from "../../graph/graph.ts";
import type { PolicyInput } from "./input.ts";
import { isAttachable } from "./parts.ts";
import type { TargetRef } from "./targets.ts";

/** Kinds that keep requests out. Rules of `authorization` are combined, but an `allow` rule of a narrower policy lets more in. */
const RESTRICTING: readonly PolicyKind[] = [
  "authorization",
  "extAuthz",
  "jwtAuth",
  "basicAuth",
  "apiKey",
  "oidc",
  "csrf",
  "extProc",
  "localRateLimit",
  "concurrencyLimit",
  "remoteRateLimit",
];

export interface Replaceable {
  readonly kinds: readonly PolicyKind[];
  /** A `refKey`. */
  readonly target: string;
  /** `users who may write … in …` */
  readonly by: string;
}

/** The kinds of a policy that restrict access at a target for which others may write narrower policies; undefined: none, or its author has decided. */
export function replaceableAt(read: Read, input: PolicyInput, target: TargetRef): Replaceable | undefined {
  const { kind, namespace, name, section } = target;
  if (input.decidesInheritance || (kind !== "Gateway" && kind !== "ListenerSet")) return undefined;
  if (!isAttachable("traffic", input, kind)) return undefined;
  const keys = keysOf(input.traffic);
  const kinds = RESTRICTING.filter((each) => keys.includes(each) || input.invalid.traffic.includes(each));
  const object = read.get(kind, `${namespace}/${name}`);
  if (kinds.length === 0 || object === undefined) return undefined;
  const at = refKey({ kind, namespace, name, section });
  const sets = "allowedListeners" in object.spec ? (object.spec.allowedListeners?.namespaces?.from ?? "None") : "None";
  const withSets = kind === "Gateway" && section === undefined && sets !== "None";
  if (input.phase === "gateway") {
    // Before a route is selected, only listeners are narrower; those of the object itself belong to its author.
    if (!withSets) return undefined;
    const by = `users who may write TracegatePolicies for ListenerSets in ${inWords([sets], namespace)}`;
    return { kinds, target: at, by };
  }
  const listeners = object.spec.listeners?.filter((each) => section === undefined || each.name === section) ?? [];
  const sources = listeners.map(({ allowedRoutes }) => allowedRoutes?.namespaces?.from ?? "Same");
  const further = withSets ? `, and for ListenerSets in ${inWords([sets], namespace)}` : "";
  return {
    kinds,
    target: at,
    by: `users who may write routes and TracegatePolicies in ${inWords(sources, namespace)}${further}`,
  };
}

/** The namespaces that `from` of listeners stands for. */
function inWords(sources: readonly string[], own: string): string {
  if (sources.includes("All")) return "any namespace";
  const others = sources.includes("Selector") ? "the namespaces that its listeners select" : undefined;
  return others === undefined
    ? `namespace ${own}`
    : sources.includes("Same")
      ? `namespace ${own} and ${others}`
      : others;
}
