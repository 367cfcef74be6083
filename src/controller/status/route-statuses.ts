/** Statuses of routes: what each of their parents that is ours makes of them. */
import { keyOfObject, type RouteParentStatus } from "../../kube/objects.ts";
import { defineQuery, type Read } from "../graph.ts";
import { isTrue, joined } from "../translate/conditions.ts";
import { controllerName } from "../translate/gateway-class.ts";
import { type ConditionDraft, type ParentModel, ROUTE_KINDS, type RouteKind } from "../translate/model.ts";
import { routeModel } from "../translate/routes.ts";
import { shadowedRules } from "../translate/shadowing.ts";
import type { DesiredStatus } from "./desired.ts";

export function routeStatuses(read: Read): readonly DesiredStatus[] {
  return ROUTE_KINDS.flatMap((kind) =>
    read
      .list(kind)
      .map((route) => read.query(routeStatus, `${kind}/${keyOfObject(route)}`))
      .filter((status) => status !== undefined),
  );
}

/** Key: `<kind>/<namespace>/<name>`. undefined: no parent is ours, and none was. */
const routeStatus = defineQuery<DesiredStatus | undefined>("routeStatus", (read, key) => {
  const kind = key.slice(0, key.indexOf("/")) as RouteKind;
  const name = key.slice(kind.length + 1);
  const route = read.get(kind, name);
  if (route === undefined) return undefined;
  const { parents } = read.query(routeModel, key);
  const written: readonly RouteParentStatus[] = route.status?.parents ?? [];
  const ours = controllerName(read);
  if (parents.length === 0 && !written.some((parent) => parent.controllerName === ours)) return undefined;
  return {
    kind,
    key: name,
    generation: route.metadata.generation ?? 0,
    status: {
      parents: parents.map((parent) => ({
        parentRef: parent.parentRef,
        conditions: [...parent.conditions, ...shadowing(read, key, parent)],
      })),
    },
  };
});

/** A condition of ours, only where a rule is of no use. */
function shadowing(read: Read, route: string, { gateway, attachments }: ParentModel): readonly ConditionDraft[] {
  const shadowed = gateway === undefined ? undefined : read.query(shadowedRules, gateway)[route];
  const messages = attachments.flatMap(({ listener }) => shadowed?.[listener] ?? []);
  return messages.length === 0 ? [] : [isTrue("tracegate.dev/Shadowed", "Shadowed", joined(messages))];
}
