/** Which policies are attached to which objects. */
import { type ObjectRef, refKey, refOf } from "../../../kube/keys.ts";
import type { Kind, KubeObject } from "../../../kube/objects.ts";
import { TARGET_KINDS, type TargetKind } from "../../crd/policy.ts";
import { defineIndex, defineQuery, type Read } from "../../graph/graph.ts";
import { type PolicyInput, policyInput } from "./input.ts";

/** What a policy is attached to. */
export type TargetRef = ObjectRef<TargetKind>;

/** Policies by `<kind>/<namespace>/<name>` of their targets, and by `<kind>/<namespace>` of their selectors. */
const BY_TARGET = defineIndex("TracegatePolicy", ({ metadata: { namespace }, spec }) => {
  const { targetRefs, targetSelectors } = Object(spec) as Readonly<Record<string, unknown>>;
  const refs = list(targetRefs).map(({ kind, name }) => refKey({ kind: String(kind), namespace, name: String(name) }));
  const selectors = list(targetSelectors).map(({ kind }) => `${String(kind)}/${namespace}`);
  return [...new Set([...refs, ...selectors])];
});

function list(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.map((each: unknown) => Object(each) as Readonly<Record<string, unknown>>) : [];
}

/** Keys of the policies that are attached to a target (`refKey`): to that object or section, not to what is around it. */
export const policiesOf = defineQuery<readonly string[]>("policiesOf", (read, target) => {
  const place = refOf<TargetKind>(target);
  const { kind, namespace, name } = place;
  const candidates = [
    ...read.find(BY_TARGET, refKey({ kind, namespace, name })),
    ...read.find(BY_TARGET, `${kind}/${namespace}`),
  ];
  const keys = new Set(candidates.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`));
  return [...keys].filter((key) => {
    const input = read.query(policyInput, key);
    return (
      input !== undefined &&
      targetsOf(read, input).some((each) => each.problem === undefined && isSameTarget(each, place))
    );
  });
});

function isSameTarget(a: TargetRef, b: TargetRef): boolean {
  return a.kind === b.kind && a.namespace === b.namespace && a.name === b.name && a.section === b.section;
}

/** Whether the target of a reference exists. */
export interface ResolvedTarget extends TargetRef {
  readonly problem?: string;
}

/** The targets of a policy, also those that do not exist; those with several references once. */
export function targetsOf(
  read: Read,
  { namespace, targetRefs, targetSelectors }: PolicyInput,
): readonly ResolvedTarget[] {
  const named = targetRefs.map(({ group, kind, name, sectionName }): ResolvedTarget => {
    const place = { kind, namespace, name };
    if (group !== TARGET_KINDS[kind])
      return { ...place, problem: `${kind} is not a kind of the group ${JSON.stringify(group)}` };
    const object = read.get<Kind>(kind, `${namespace}/${name}`);
    if (object === undefined) return { ...place, problem: `${kind} ${namespace}/${name} not found` };
    return sectionName === undefined ? place : inSection(object, place, sectionName);
  });
  const selected = targetSelectors.flatMap(({ kind, matchLabels, sectionName }) =>
    read
      .list<Kind>(kind)
      .filter(({ metadata }) => metadata.namespace === namespace && hasLabels(metadata.labels ?? {}, matchLabels))
      .map((object): ResolvedTarget => {
        const place = { kind, namespace, name: object.metadata.name };
        return sectionName === undefined ? place : inSection(object, place, sectionName);
      }),
  );
  const all = [...named, ...selected];
  return all.filter((target, i) => all.findIndex((each) => isSameTarget(each, target)) === i);
}

function hasLabels(labels: Readonly<Record<string, string>>, wanted: Readonly<Record<string, string>>): boolean {
  return Object.entries(wanted).every(([name, value]) => labels[name] === value);
}

/** What objects with sections have in their specs. */
interface Sectioned {
  readonly listeners?: readonly { readonly name: string }[];
  readonly rules?: readonly { readonly name?: string }[];
  readonly ports?: readonly { readonly name?: string; readonly port: number }[];
}

/** Sections of Services and ServiceImports are port numbers, as backendRefs have them. */
function inSection(object: KubeObject, place: TargetRef, section: string): ResolvedTarget {
  const { listeners, rules, ports } = (object as unknown as { readonly spec?: Sectioned }).spec ?? {};
  const what = `${place.kind} ${place.namespace}/${place.name}`;
  if (place.kind === "Service" || place.kind === "ServiceImport") {
    const port = ports?.find((each) => each.name === section || String(each.port) === section)?.port;
    return port === undefined
      ? { ...place, section, problem: `${what} has no port ${section}` }
      : { ...place, section: String(port) };
  }
  if (place.kind === "TracegateBackend") return { ...place, section, problem: `${what} has no sections` };
  const isGateway = place.kind === "Gateway" || place.kind === "ListenerSet";
  const names = (isGateway ? listeners : rules)?.map(({ name }) => name);
  if (names?.includes(section) === true) return { ...place, section };
  return { ...place, section, problem: `${what} has no ${isGateway ? "listener" : "rule"} ${section}` };
}
