import type { LabelSelector, NamespacesFrom } from "../../../kube/objects.ts";
import type { Read } from "../../graph/graph.ts";

/** Whether `namespace` is among those that `from` means; `own`: the namespace that `Same` means. */
export function isFromAllowed(read: Read, { from = "Same", selector }: NamespacesFrom, own: string, namespace: string) {
  switch (from) {
    case "All":
      return true;
    case "Same":
      return namespace === own;
    case "Selector":
      return selector !== undefined && matchesLabels(selector, read.get("Namespace", namespace)?.metadata.labels ?? {});
    case "None":
      return false;
  }
}

/** metav1.LabelSelector: all requirements must hold; an empty selector matches everything. */
export function matchesLabels(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  labels: Readonly<Record<string, string>>,
): boolean {
  return (
    Object.entries(matchLabels).every(([name, value]) => labels[name] === value) &&
    matchExpressions.every((requirement) => holds(requirement, labels))
  );
}

type Requirement = NonNullable<LabelSelector["matchExpressions"]>[number];

function holds({ key, operator, values = [] }: Requirement, labels: Readonly<Record<string, string>>): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
  }
}
