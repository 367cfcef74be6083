/** Hashes of the keys of session affinity, the same in every worker. */

/** Two 32-bit halves. */
export type Hash = readonly [number, number];

/** FNV-1a from two starting points. */
export function hashOf(bytes: Uint8Array): Hash {
  let a = 0x811c9dc5;
  let b = 0x050c5d1f;
  for (const byte of bytes) {
    a = Math.imul(a ^ byte, 0x01000193);
    b = Math.imul(b ^ byte, 0x01000193);
  }
  return [mix(a), mix(b ^ bytes.length)];
}

/** 53 random-looking bits of both hashes as a number between 0 and 1, never either. */
export function uniform(key: Hash, address: Hash): number {
  const high = mix(key[0] ^ address[0]);
  const low = mix(Math.imul(high, 0x9e3779b1) ^ key[1] ^ Math.imul(address[1], 0x85ebca6b));
  return ((high >>> 6) * 2 ** 26 + (low >>> 6) + 0.5) / 2 ** 52;
}

/** A key as a number between 0 and 1, which says nothing about its endpoint. */
export function unitOf(key: Uint8Array): number {
  return uniform(hashOf(key), NO_ADDRESS);
}

const NO_ADDRESS: Hash = [0, 0];

/** The finalizer of MurmurHash3: every bit depends on every other. */
function mix(value: number): number {
  let h = value ^ (value >>> 16);
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return h ^ (h >>> 16);
}
