/** Divides thousands of objects into shards, so that a change of one costs a run for its shard and a check of every other shard. */
const SHARDS = 64;
export const SHARD_NUMBERS: readonly number[] = Array.from({ length: SHARDS }, (_, shard) => shard);

/** By FNV-1a: names that differ in their last characters are spread evenly. */
export function shardOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  return (hash >>> 0) % SHARDS;
}
