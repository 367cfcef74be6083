/**
 * Where the parts of a configuration were written. Routes and policies of a file know their place in it, objects of Kubernetes their
 * name and field. Places in lists change with every edit of a file, so nothing has them by which a reload recognizes a route:
 * what is written at a route, backend or listener itself is found by its structure, and other policies name what they are written in.
 */
import { nameOfKey, objectKey } from "../base/object-key.ts";
import type { ObjectName, Origin } from "../base/origin.ts";
import type { Path } from "../base/paths.ts";
import { writtenKind } from "../policies/contract/shadow.ts";
import { kindsOf, type Level, NO_LEVEL, type Sources } from "../policies/merge.ts";
import type { PolicySet, SetKey } from "../policies/policy-set.ts";

/** Where one policy, or some rules of one, were written. */
export interface PolicySource {
  /**
   * An entry of `policies[]` or a TracegatePolicy by `<namespace>/<name>`, a named backend by its key, or another object. Absent: the
   * route, backend or listener itself; of a route's backend with `at`: the route.
   */
  readonly in?: { readonly policy: string } | { readonly backend: string } | ObjectName;
  /** The field there. Absent: where such policies usually are, such as `policies.<kind>`. */
  readonly at?: Path;
  /** How many rules of `authorization` come from there; absent for other kinds. */
  readonly rules?: number;
}

export type PolicySources = Sources<PolicySource>;
export type PolicyLevel = Level<PolicySource>;

/** The origin of each kind: of `authorization` that of each rule, of others one. */
export type PolicyOrigins = { readonly [Kind in SetKey]?: readonly Origin[] };

/** What has policies. */
interface Holder {
  readonly policies: PolicySet;
  /** Absent kinds are written at the holder itself. */
  readonly sources?: PolicySources;
}

/** What sources name. */
export interface Containers {
  readonly backends: readonly NamedBackend[];
  readonly targeted: readonly {
    readonly name: { readonly name: string; readonly namespace: string } | null;
    readonly origin?: Origin;
  }[];
}

/** Policies that are written at one place. `source`: where the policy in a field is, absent for the holder itself. */
export function levelOf(set: PolicySet, source: (field: string) => PolicySource = () => ({})): PolicyLevel {
  const kinds = kindsOf(set);
  if (kinds.length === 0) return NO_LEVEL;
  const sources = kinds.map((kind) => {
    const rules = rulesOf(set, kind)?.length;
    return [kind, [{ ...source(writtenKind(kind)), ...(rules !== undefined && { rules }) }]];
  });
  return { set, sources: Object.fromEntries(sources) };
}

/** Rules add up over levels, so that each has its own origin. */
function rulesOf(set: PolicySet, kind: SetKey): readonly unknown[] | undefined {
  return kind === "authorization" || kind === "shadowAuthorization" ? set[kind]?.rules : undefined;
}

/** What a holder of these policies records: the sources of the kinds that are not only written at itself. */
export function recorded({ set, sources }: PolicyLevel): { readonly sources?: PolicySources } {
  const elsewhere = kindsOf(set).flatMap((kind) => {
    const { [kind]: list = [] } = sources;
    return list.some((source) => source.in !== undefined || source.at !== undefined) ? [[kind, list]] : [];
  });
  return elsewhere.length === 0 ? {} : { sources: Object.fromEntries(elsewhere) };
}

/**
 * The origins of the policies of `holder`, whose own are in the field `own` of what is written at `around`. Takes time
 * by the number of named backends and of `policies[]`. Kinds whose origin is unknown are left out.
 */
export function originsOf(
  { policies, sources = {} }: Holder,
  around: Origin | undefined,
  own: Path,
  { backends, targeted }: Containers,
): PolicyOrigins {
  const find = (kind: SetKey, { in: container, at }: PolicySource): Origin | undefined => {
    if (container === undefined) return below(around, at ?? [...own, writtenKind(kind)]);
    if ("kind" in container) return { object: container, path: at ?? [] };
    if ("backend" in container) {
      const backend = backends.find(({ key }) => key === container.backend);
      return backend && below(originOfBackend(backend), at ?? [...policiesOfBackend(backend), writtenKind(kind)]);
    }
    const entry = targeted.find(({ name }) => name !== null && objectKey(name) === container.policy);
    if (entry?.origin !== undefined) return below(entry.origin, at ?? ["policy", writtenKind(kind)]);
    return { object: { kind: "TracegatePolicy", ...nameOfKey(container.policy) }, path: at ?? [] };
  };
  return Object.fromEntries(
    kindsOf(policies).flatMap((kind) => {
      const list = sources[kind] ?? [{}];
      const origins = list.flatMap((source) => {
        const origin = find(kind, source);
        if (origin === undefined) return [];
        const all = rulesOf(policies, kind);
        if (all === undefined) return [origin];
        const rules = source.rules ?? all.length;
        return Array.from({ length: rules }, (_, i): Origin => ({ ...origin, path: [...origin.path, "rules", i] }));
      });
      return origins.length === 0 ? [] : [[kind, origins]];
    }),
  );
}

interface NamedBackend {
  readonly key: string;
  readonly name: string;
  readonly namespace?: string;
  readonly origin?: Origin;
}

function originOfBackend({ origin, name, namespace }: NamedBackend): Origin | undefined {
  return namespace === undefined ? origin : { object: { kind: "TracegateBackend", namespace, name }, path: [] };
}

function policiesOfBackend({ namespace }: NamedBackend): Path {
  return namespace === undefined ? ["policies"] : ["spec", "policies"];
}

/** The field `path` of what is written at `origin`. */
export function below(origin: Origin | undefined, path: Path): Origin | undefined {
  return origin && { ...origin, path: [...origin.path, ...path] };
}
