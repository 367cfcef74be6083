/** The answer of one of the replicas of a gateway. */
export interface OfReplica<Answer> {
  /** Name of its pod; undefined: the proxy on this machine, which is the only one. */
  readonly pod: string | undefined;
  readonly answer: Answer;
}

/** The sum of a field of several objects. */
export function sumOf<T>(items: readonly T[], field: (item: T) => number): number {
  return items.reduce((sum, item) => sum + field(item), 0);
}

/** The largest value of a field; undefined if none of the objects has it. */
export function mostOf<T>(items: readonly T[], field: (item: T) => number | undefined): number | undefined {
  const values = items.flatMap((item) => field(item) ?? []);
  return values.length === 0 ? undefined : Math.max(...values);
}

/** An average of a field, to which each object counts by its weight; without any weight, the plain average. */
export function averageOf<T>(items: readonly T[], field: (item: T) => number, weight: (item: T) => number): number {
  const all = sumOf(items, weight);
  if (all === 0) return items.length === 0 ? 0 : sumOf(items, field) / items.length;
  return sumOf(items, (item) => field(item) * weight(item)) / all;
}
