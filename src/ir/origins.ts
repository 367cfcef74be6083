/**
 * Where the parts of a configuration were written. Routes and policies of a file know their place in it, objects of Kubernetes their
 * name and field. Places in lists change with every edit of a file, so nothing has them by which a reload recognizes a route:
 * what is written at a route, backend or listener itself is found by its structure, and other policies name what they are written in.
 */
import type { ObjectName, Origin } from "../base/origin.ts";
import type { Path } from "../base/paths.ts";
import { writtenKind } from "../policies/contract/shadow.ts";
import { kindsOf, type Level, NO_LEVEL, type Sources } from "../policies/merge.ts";
import type { PolicySet, SetKey } from "../policies/policy-set.ts";
import type { Phase } from "../trace/events.ts";

/** Where one policy, or some rules of one, were written. */
export interface PolicySource {
  /**
   * An entry of `policies[]` or a named backend by its key, or an object of Kubernetes. Absent: the route, backend or listener itself; of a
   * route's backend with `at`: the route.
   */
  readonly in?: { readonly policy: string } | { readonly backend: string } | ObjectName;
  /** The field there. Absent: where such policies usually are, such as `policies.<kind>`. */
  readonly at?: Path;
  /**
   * How many rules of `authorization` are in the list `rules` there; absent for other kinds, and for one rule that stands for what is
   * there, such as a policy that is invalid.
   */
  readonly rules?: number;
}

export type PolicySources = Sources<PolicySource>;
export type PolicyLevel = Level<PolicySource>;

/** Policies of one target, by the phase in which they run. */
export type PhaseLevels = Readonly<Record<Phase, PolicyLevel>>;

export const NO_PHASES: PhaseLevels = { gateway: NO_LEVEL, route: NO_LEVEL, backend: NO_LEVEL };

/** The origin of each kind: of `authorization` that of each rule, of others one. */
export type PolicyOrigins = { readonly [Kind in SetKey]?: readonly Origin[] };

/** What has policies. */
export interface Holder {
  readonly policies: PolicySet;
  /** Absent kinds are written at the holder itself. */
  readonly sources?: PolicySources;
  /** Of policies of other levels that have no effect here. */
  readonly replaced?: PolicySources;
}

/** What sources name. */
export interface Containers {
  readonly backends: readonly Container[];
  /** Sources refer only to those with a name. */
  readonly targeted: readonly (Container & { readonly name: object | null })[];
}
interface Container {
  readonly key: string;
  readonly origin?: Origin;
}

/** What is around a holder, and the field of it in which the holder's own policies are written. */
export interface Around {
  readonly origin: Origin | undefined;
  readonly own: Path;
}

/** Policies that are written at one place. `source`: where the policy in a field is, absent for the holder itself. */
export function levelOf(set: PolicySet, source: (field: string) => PolicySource = () => ({})): PolicyLevel {
  const kinds = kindsOf(set);
  if (kinds.length === 0) return NO_LEVEL;
  return {
    set,
    sources: Object.fromEntries(kinds.map((kind) => [kind, [whole(set, kind, source(writtenKind(kind)))]])),
  };
}

/** Rules add up over levels, so that each has its own origin. */
function whole(set: PolicySet, kind: SetKey, source: PolicySource): PolicySource {
  const rules = kind === "authorization" || kind === "shadowAuthorization" ? set[kind]?.rules : undefined;
  return rules === undefined ? source : { ...source, rules: rules.length };
}

/**
 * What a holder has of its policies: also the sources of the kinds that are not only written at itself, and as `inline`, for the dump,
 * those that are, unless they are all.
 */
export function recorded(
  { set, sources, replaced }: PolicyLevel,
  written = set,
): Holder & { readonly inline?: PolicySet } {
  const elsewhere = kindsOf(set).flatMap((kind) => {
    const { [kind]: list = [] } = sources;
    return list.some((source) => source.in !== undefined || source.at !== undefined) ? [[kind, list]] : [];
  });
  const own = kindsOf(written);
  const isAll = own.length === kindsOf(set).length && own.every((kind) => set[kind] === written[kind]);
  return {
    policies: set,
    ...(elsewhere.length > 0 && { sources: Object.fromEntries(elsewhere) }),
    ...(replaced && { replaced }),
    ...(!isAll && { inline: written }),
  };
}

/**
 * The origins of the policies of `holder`, whose own are in the field `own` of what is written at `around`. Takes time
 * by the number of named backends and of `policies[]`. Kinds whose origin is unknown are left out.
 */
export function originsOf(
  holder: Holder,
  around: Origin | undefined,
  own: Path,
  containers: Containers,
): PolicyOrigins {
  return Object.fromEntries(
    kindsOf(holder.policies).flatMap((kind) => {
      const origins = sourcesOf(kind, holder).flatMap((source) => {
        const origin = originOf(kind, source, { origin: around, own }, containers);
        if (origin === undefined) return [];
        if (source.rules === undefined) return [origin];
        return Array.from({ length: source.rules }, (_, i) => ({ ...origin, path: [...origin.path, "rules", i] }));
      });
      return origins.length === 0 ? [] : [[kind, origins]];
    }),
  );
}

/** Where the policy of a kind, or rules of it, are written. */
export function sourcesOf(kind: SetKey, { policies, sources }: Holder): readonly PolicySource[] {
  return sources?.[kind] ?? [whole(policies, kind, {})];
}

/**
 * Names the place where the policy of a kind is written: the same name wherever a policy applies that names its target, and `owner`, the key of
 * what has it, for one that is written there.
 */
export function placeName(kind: SetKey, { sources }: Pick<Holder, "sources">, owner: string): string {
  const written = sources?.[kind]?.at(-1)?.in;
  if (written === undefined) return owner;
  if ("kind" in written) return `${written.kind} ${written.namespace}/${written.name}`;
  return "policy" in written ? `policy ${written.policy}` : `backend ${written.backend}`;
}

/** The origin of a source; undefined if it is unknown. */
export function originOf(
  kind: SetKey,
  { in: container, at }: PolicySource,
  { origin, own }: Around,
  { backends, targeted }: Containers,
): Origin | undefined {
  if (container === undefined) return below(origin, at ?? [...own, writtenKind(kind)]);
  if ("kind" in container) return { object: container, path: at ?? [] };
  if ("backend" in container) {
    const backend = backends.find(({ key }) => key === container.backend);
    return below(backend?.origin, at ?? ["policies", writtenKind(kind)]);
  }
  const entry = targeted.find(({ key, name }) => name !== null && key === container.policy);
  return below(entry?.origin, at ?? ["policy", writtenKind(kind)]);
}

/** Where a backend of a route is written: its field `at`, by default the entry at `index` of the backends. */
export function originOfBackend(route: Origin | undefined, index: number, at?: Path): Origin | undefined {
  return below(route, at ?? [route?.object === undefined ? "backends" : "backendRefs", index]);
}

/** The field `path` of what is written at `origin`. */
export function below<Known extends Origin | undefined>(origin: Known, path: Path): Known;
export function below(origin: Origin | undefined, path: Path): Origin | undefined {
  return origin && { ...origin, path: [...origin.path, ...path] };
}
