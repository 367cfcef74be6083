import type { Endpoint } from "./endpoint.ts";

/** Two 32-bit halves. */
type Hash = readonly [number, number];

/**
 * The endpoint for `key` by rendezvous hashing (highest random weight, Thaler and Ravishankar 1998), weighted by capacity:
 * the same in every worker and after every reload; when an endpoint comes or goes, only its own keys move.
 */
export function rendezvous(endpoints: readonly Endpoint[], key: Uint8Array): Endpoint | undefined {
  const hash = hashOf(key);
  let best: Endpoint | undefined;
  let highest = Number.NEGATIVE_INFINITY;
  for (const endpoint of endpoints) {
    // -w / ln(u), with u uniform in (0, 1), is highest with probability proportional to w.
    const weight = -endpoint.capacity / Math.log(uniform(hash, placeHash(endpoint)));
    if (weight <= highest) continue;
    highest = weight;
    best = endpoint;
  }
  return best;
}

/** By address alone: a new capacity or other settings of the connection move as few keys as they can. */
function placeHash(endpoint: Endpoint): Hash {
  let hash = placeHashes.get(endpoint);
  if (hash === undefined) {
    hash = hashOf(Buffer.from(endpoint.pool.name, "utf8"));
    placeHashes.set(endpoint, hash);
  }
  return hash;
}

const placeHashes = new WeakMap<Endpoint, Hash>();

/** FNV-1a from two starting points. */
function hashOf(bytes: Uint8Array): Hash {
  let a = 0x811c9dc5;
  let b = 0x050c5d1f;
  for (const byte of bytes) {
    a = Math.imul(a ^ byte, 0x01000193);
    b = Math.imul(b ^ byte, 0x01000193);
  }
  return [mix(a), mix(b ^ bytes.length)];
}

/** 53 random-looking bits of both hashes as a number between 0 and 1, never either. */
function uniform(key: Hash, place: Hash): number {
  const high = mix(key[0] ^ place[0]);
  const low = mix(Math.imul(high, 0x9e3779b1) ^ key[1] ^ Math.imul(place[1], 0x85ebca6b));
  return ((high >>> 6) * 2 ** 26 + (low >>> 6) + 0.5) / 2 ** 52;
}

/** The finalizer of MurmurHash3: every bit depends on every other. */
function mix(value: number): number {
  let h = value ^ (value >>> 16);
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return h ^ (h >>> 16);
}
