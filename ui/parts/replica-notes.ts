import type { Replica } from "../../src/admin/plane/answers.ts";

/** What is not as it should be with the replicas that make up a page: whose part is missing, and which ones have another configuration. */
export function replicaNotes(replicas: readonly Replica[]): readonly string[] {
  const missing = replicas.flatMap(({ name, problem }) =>
    problem === undefined ? [] : [`What ${name} knows is missing here: ${problem}`],
  );
  const known = replicas.flatMap(({ name, configuration }) => (configuration ? [{ name, ...configuration }] : []));
  const groups = [...Map.groupBy(known, ({ hash }) => hash).values()];
  if (groups.length < 2) return missing;
  const texts = groups.map((group) => group.map(({ name, generation }) => `${name} has ${generation}`).join(", "));
  return [...missing, `Not all replicas have the same configuration: ${texts.join("; ")}`];
}
