import { differenceText, type Replica } from "../../src/admin/plane/replicas.ts";

/** What is not as it should be with the replicas that make up a page: whose part is missing, and which ones have another configuration. */
export function replicaNotes(replicas: readonly Replica[]): readonly string[] {
  const missing = replicas.flatMap(({ name, problem }) =>
    problem === undefined ? [] : [`What ${name} knows is missing here: ${problem}`],
  );
  return [...missing, differenceText(replicas) ?? []].flat();
}
