/** 64 bits as two signed 32-bit halves. */
export interface Hash64 {
  low: number;
  high: number;
}

/**
 * HalfSipHash-2-4 with 64 bits of output (Aumasson and Bernstein, "SipHash: a fast short-input PRF") over the UTF-16 code units
 * of `text`, two per 32-bit word. The secret key stops hash flooding: without it, a client that controls the text could choose
 * names that collide with another client's bucket, or that all fall into one set. 32-bit arithmetic, because 64-bit integers are
 * BigInt in JavaScript. Writes the result to `into`, so that a request allocates nothing.
 */
export function halfSipHash(keyLow: number, keyHigh: number, text: string, into: Hash64): void {
  let v0 = keyLow | 0;
  let v1 = keyHigh ^ 0xee;
  let v2 = 0x6c796765 ^ keyLow;
  let v3 = 0x74656462 ^ keyHigh;
  const words = (text.length >> 1) + 1;
  for (let i = 0; i < words + 4; i++) {
    let word = 0;
    // The last word carries the length, so no text is a prefix of another. Then four finalisation rounds per output half.
    if (i < words - 1) word = text.charCodeAt(2 * i) | (text.charCodeAt(2 * i + 1) << 16);
    else if (i === words - 1) word = (text.length << 16) | (text.length & 1 ? text.charCodeAt(text.length - 1) : 0);
    else if (i === words) v2 ^= 0xee;
    else if (i === words + 2) {
      into.low = v1 ^ v3;
      v1 ^= 0xdd;
    }
    v3 ^= word;
    for (let round = 0; round < 2; round++) {
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
    }
    v0 ^= word;
  }
  into.high = v1 ^ v3;
}
