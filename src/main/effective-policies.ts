import type { EffectivePolicy, WrittenPolicy } from "../admin/plane/answers.ts";
import { isObject } from "../base/fields.ts";
import { type Locate, withPlace } from "../base/origin.ts";
import type { Ir } from "../ir/ir.ts";
import { type Around, type Holder, originOf, type PolicySource, sourcesOf } from "../ir/origins.ts";
import { withShadows } from "../policies/compile.ts";
import { isShadowKey, writtenKind } from "../policies/contract/shadow.ts";
import { kindsOf } from "../policies/merge.ts";
import { FINAL_ORDER, REQUEST_ORDER, RESPONSE_ORDER } from "../policies/order.ts";
import type { SetKey } from "../policies/policy-set.ts";
import { redactPolicy } from "../policies/registry.ts";
import type { Phase } from "../trace/events.ts";

type Attachment = NonNullable<WrittenPolicy["attachedTo"]>;

/** What policies are shown with. */
interface PolicyContext {
  readonly containers: Pick<Ir, "backends" | "targeted">;
  readonly locate: Locate;
  /** Names (lower-case) of headers whose values are secrets. */
  readonly hidden: ReadonlySet<string>;
}

/** What the policies of each phase are written at, unless they are elsewhere. */
const HOLDERS = { gateway: "listener", route: "route", backend: "backend" } as const satisfies Record<
  Phase,
  Attachment
>;

/** The policies of a holder that are in effect in a phase, in the order in which they run. */
export function effectivePolicies(
  phase: Phase,
  holder: Holder,
  around: Around,
  { containers, locate, hidden }: PolicyContext,
): EffectivePolicy[] {
  const present = new Set(kindsOf(holder.policies));
  const onRequest = new Set<SetKey>(withShadows(REQUEST_ORDER[phase]));
  const onResponse = new Set<SetKey>(withShadows([...RESPONSE_ORDER[phase], ...FINAL_ORDER[phase]]));
  const ordered = [...onRequest, ...onResponse].filter((kind) => present.has(kind));
  const written = (kind: SetKey, sources: readonly PolicySource[]): WrittenPolicy[] =>
    sources.flatMap((source) => {
      const origin = originOf(kind, source, around, containers);
      if (origin === undefined) return [];
      const attachedTo = attachmentOf(source, HOLDERS[phase], containers.targeted);
      const { rules } = source;
      return [withPlace({ origin, ...(attachedTo && { attachedTo }), ...(rules !== undefined && { rules }) }, locate)];
    });
  return [...new Set([...ordered, ...present])].map((kind) => ({
    kind: writtenKind(kind),
    ...(isShadowKey(kind) && { shadow: true }),
    runs: [
      ...(onRequest.has(kind) ? ["request" as const] : []),
      ...(onResponse.has(kind) ? ["response" as const] : []),
    ],
    from: written(kind, sourcesOf(kind, holder)),
    replaced: written(kind, holder.replaced?.[kind] ?? []),
    config: redactPolicy(kind, holder.policies[kind], hidden),
  }));
}

function attachmentOf(
  { in: container, at }: PolicySource,
  holder: Attachment,
  targeted: Ir["targeted"],
): Attachment | undefined {
  // A backend's policies that are written at another place of the same route apply to all its backends.
  if (container === undefined) return holder === "backend" && at !== undefined ? "route" : holder;
  if ("backend" in container) return "backend";
  if ("kind" in container && container.kind !== "TracegatePolicy") return holder;
  const entries = targeted.filter(({ key, name }) =>
    "policy" in container
      ? name !== null && key === container.policy
      : name?.name === container.name && name.namespace === container.namespace,
  );
  const [attached, ...others] = new Set(entries.map(({ target }) => attachmentTo(target)));
  return others.length === 0 ? attached : undefined;
}

/** What a target of `policies[]` or of a TracegatePolicy names. */
function attachmentTo({ gateway, listenerSet, route, backend }: Ir["targeted"][number]["target"]): Attachment {
  if (listenerSet !== undefined) return has(listenerSet, "section") ? "listener" : "gateway";
  if (route !== undefined) return has(route, "ruleName") ? "rule" : "route";
  if (backend !== undefined) return has(backend, "service") ? "service" : "backend";
  return has(gateway, "listenerName") ? "listener" : "gateway";
}

function has(target: unknown, field: string): boolean {
  return isObject(target) && target[field] !== undefined && target[field] !== null;
}
