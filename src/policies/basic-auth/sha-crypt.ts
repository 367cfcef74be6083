/** "Unix crypt using SHA-256 and SHA-512" by Ulrich Drepper: the formats `$5$` and `$6$` of crypt(3). */
import { hash } from "node:crypto";
import { encode64 } from "./crypt64.ts";

interface Variant {
  readonly name: "sha256" | "sha512";
  readonly length: number;
  /** Which bytes are written together next. */
  readonly next: (a: number, b: number, c: number) => readonly [number, number, number];
  readonly tail: (byte: (i: number) => number) => string;
}

const VARIANTS: Readonly<Record<"5" | "6", Variant>> = {
  "5": {
    name: "sha256",
    length: 32,
    next: (a, b, c) => [c + 1, a + 1, b + 1],
    tail: (byte) => encode64((byte(31) << 8) | byte(30), 3),
  },
  "6": {
    name: "sha512",
    length: 64,
    next: (a, b, c) => [b + 1, c + 1, a + 1],
    tail: (byte) => encode64(byte(63), 2),
  },
};

/** What stands behind the salt. */
export function shaCrypt(id: "5" | "6", password: Buffer, salt: string, rounds: number): string {
  const variant = VARIANTS[id];
  const digestOf = (parts: readonly Uint8Array[]): Buffer => hash(variant.name, Buffer.concat(parts), "buffer");
  const saltBytes = Buffer.from(salt, "latin1");
  const inner = digestOf([password, saltBytes, password]);
  const parts = [password, saltBytes, stretch(inner, password.length)];
  for (let bits = password.length; bits > 0; bits >>= 1) parts.push((bits & 1) === 1 ? inner : password);
  let digest = digestOf(parts);
  const p = stretch(digestOf(new Array<Buffer>(password.length).fill(password)), password.length);
  const s = stretch(digestOf(new Array<Buffer>(16 + (digest[0] ?? 0)).fill(saltBytes)), saltBytes.length);
  for (let i = 0; i < rounds; i++) {
    const odd = (i & 1) === 1;
    const round = [odd ? p : digest];
    if (i % 3 !== 0) round.push(s);
    if (i % 7 !== 0) round.push(p);
    round.push(odd ? digest : p);
    digest = digestOf(round);
  }
  return encode(digest, variant);
}

/** The bytes again and again, up to a length. */
function stretch(bytes: Buffer, length: number): Buffer {
  return length === 0 ? Buffer.alloc(0) : Buffer.alloc(length, bytes);
}

function encode(digest: Buffer, { length, next, tail }: Variant): string {
  const byte = (i: number): number => digest[i] ?? 0;
  const third = Math.floor(length / 3);
  let text = "";
  let [a, b, c]: readonly [number, number, number] = [0, third, 2 * third];
  for (let i = 0; i < third; i++) {
    text += encode64((byte(a) << 16) | (byte(b) << 8) | byte(c), 4);
    [a, b, c] = next(a, b, c);
  }
  return text + tail(byte);
}
