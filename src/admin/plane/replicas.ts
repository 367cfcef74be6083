/** Replicas whose answers `tgctl` merges into one; it and the web view show them. */
import type { ConfigStatus } from "./config-status.ts";

/** What `tgctl` adds to an answer that it has merged from those of replicas. */
export interface Merged {
  readonly replicas: readonly Replica[];
}

/** One of the replicas of a gateway. */
export interface Replica {
  /** Of its pod. */
  readonly name: string;
  /** Why its part of the answer is missing. */
  readonly problem?: string;
  /**
   * Which configuration it has; absent: not known. Replicas with the same `hash` have the same; `generation` is a number that each replica counts by
   * itself.
   */
  readonly configuration?: Pick<ConfigStatus, "generation" | "hash" | "synchronized">;
}

/** A replica, with its problem if it has one, and its configuration if its status is known. */
export function replicaOf(name: string, problem: string | undefined, status: ConfigStatus | undefined): Replica {
  return {
    name,
    ...(problem !== undefined && { problem }),
    ...(status !== undefined && {
      configuration: { generation: status.generation, hash: status.hash, synchronized: status.synchronized },
    }),
  };
}

/** The replicas that an answer was merged from; empty if it comes from one gateway. */
export function replicasOf(answer: object): readonly Replica[] {
  return "replicas" in answer && Array.isArray(answer.replicas) ? answer.replicas : [];
}

/** A sentence that says which replica has which configuration; undefined unless some are known to differ. */
export function differenceText(replicas: readonly Replica[]): string | undefined {
  const known = replicas.flatMap(({ name, configuration }) => (configuration ? [{ name, ...configuration }] : []));
  const groups = [...Map.groupBy(known, ({ hash }) => hash).values()];
  if (groups.length < 2) return undefined;
  const texts = groups.map((group) => group.map(({ name, generation }) => `${name} has ${generation}`).join(", "));
  return `Not all replicas have the same configuration: ${texts.join("; ")}`;
}
