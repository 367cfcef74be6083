/**
 * The hashes of crypt(3) that node:crypto does not have: `$1$` and `$apr1$` (MD5), `$5$` and `$6$` ("Unix crypt using SHA-256 and
 * SHA-512" by Ulrich Drepper). Password, salt and rounds come in, the text behind the salt goes out. The oddities below are the
 * formats; fixtures/htpasswd has hashes that other programs made.
 */
import { hash } from "node:crypto";

/** The alphabet of crypt(3), which is not that of base64. */
const ALPHABET = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** `count` characters for the lowest `count` groups of six bits, the lowest group first. */
function encode64(bits: number, count: number): string {
  let text = "";
  for (let i = 0; i < count; i++) text += ALPHABET[(bits >> (6 * i)) & 63];
  return text;
}

const MD5_ROUNDS = 1000;

/** The 22 characters behind the salt of `$apr1$` (Apache's) and `$1$` (FreeBSD's); they differ in `magic` alone. */
export function md5Crypt(password: Buffer, salt: string, magic: string): string {
  const saltBytes = Buffer.from(salt, "latin1");
  const inner = md5([password, saltBytes, password]);
  const parts = [password, Buffer.from(magic, "latin1"), saltBytes];
  for (let left = password.length; left > 0; left -= 16) parts.push(inner.subarray(0, Math.min(16, left)));
  // A zero byte or the first byte of the password: a bug of the first implementation that became the format.
  parts.push(...byLengthBits(password, Buffer.of(0), password.subarray(0, 1)));
  return encodeMd5(mixRounds(md5, md5(parts), password, saltBytes, MD5_ROUNDS));
}

function encodeMd5(digest: Buffer): string {
  const byte = (i: number): number => digest[i] ?? 0;
  let text = "";
  for (let i = 0; i < 5; i++) text += encode64((byte(i) << 16) | (byte(i + 6) << 8) | byte(i === 4 ? 5 : i + 12), 4);
  return text + encode64(byte(11), 2);
}

function md5(parts: readonly Uint8Array[]): Buffer {
  return hash("md5", Buffer.concat(parts), "buffer");
}

interface Variant {
  readonly name: "sha256" | "sha512";
  readonly length: number;
  /** Indexes of the next three bytes to encode: the specification permutes them. */
  readonly next: (a: number, b: number, c: number) => readonly [number, number, number];
  /** The last characters: what remains after groups of three bytes. */
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

/**
 * The part behind the salt of `$5$` (SHA-256) and `$6$` (SHA-512). Time is linear in `rounds` and quadratic in the length of the
 * password; the caller bounds both.
 */
export function shaCrypt(id: "5" | "6", password: Buffer, salt: string, rounds: number): string {
  const variant = VARIANTS[id];
  const digestOf = (parts: readonly Uint8Array[]): Buffer => hash(variant.name, Buffer.concat(parts), "buffer");
  const saltBytes = Buffer.from(salt, "latin1");
  const inner = digestOf([password, saltBytes, password]);
  const parts = [password, saltBytes, stretch(inner, password.length), ...byLengthBits(password, inner, password)];
  const digest = digestOf(parts);
  const p = stretch(digestOf(new Array<Buffer>(password.length).fill(password)), password.length);
  const s = stretch(digestOf(new Array<Buffer>(16 + (digest[0] ?? 0)).fill(saltBytes)), saltBytes.length);
  return encodeSha(mixRounds(digestOf, digest, p, s, rounds), variant);
}

/** One part for each bit of the password's length, the lowest bit first. */
function byLengthBits(password: Buffer, one: Buffer, zero: Buffer): Buffer[] {
  const parts: Buffer[] = [];
  for (let bits = password.length; bits > 0; bits >>= 1) parts.push((bits & 1) === 1 ? one : zero);
  return parts;
}

/** The rounds that make guessing slow, the same for all hashes. */
function mixRounds(
  digestOf: (parts: readonly Uint8Array[]) => Buffer,
  first: Buffer,
  password: Buffer,
  salt: Buffer,
  rounds: number,
): Buffer {
  let digest = first;
  for (let i = 0; i < rounds; i++) {
    const odd = (i & 1) === 1;
    const round = [odd ? password : digest];
    if (i % 3 !== 0) round.push(salt);
    if (i % 7 !== 0) round.push(password);
    round.push(odd ? digest : password);
    digest = digestOf(round);
  }
  return digest;
}

/** Repeats the bytes up to `length`. */
function stretch(bytes: Buffer, length: number): Buffer {
  return length === 0 ? Buffer.alloc(0) : Buffer.alloc(length, bytes);
}

function encodeSha(digest: Buffer, { length, next, tail }: Variant): string {
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
