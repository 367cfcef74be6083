import { hash } from "node:crypto";
import { encode64 } from "./crypt64.ts";

const ROUNDS = 1000;

/** The 22 characters behind the salt of `$apr1$` (Apache's) and `$1$` (FreeBSD's); they differ in `magic` alone. */
export function md5Crypt(password: Buffer, salt: string, magic: string): string {
  const saltBytes = Buffer.from(salt, "latin1");
  const inner = md5([password, saltBytes, password]);
  const parts = [password, Buffer.from(magic, "latin1"), saltBytes];
  for (let left = password.length; left > 0; left -= 16) parts.push(inner.subarray(0, Math.min(16, left)));
  // For each bit of the length a zero byte or the first of the password: a slip of the first author that has become the format.
  for (let bits = password.length; bits > 0; bits >>= 1)
    parts.push((bits & 1) === 1 ? Buffer.of(0) : password.subarray(0, 1));
  let digest = md5(parts);
  for (let i = 0; i < ROUNDS; i++) {
    const odd = (i & 1) === 1;
    const round = [odd ? password : digest];
    if (i % 3 !== 0) round.push(saltBytes);
    if (i % 7 !== 0) round.push(password);
    round.push(odd ? digest : password);
    digest = md5(round);
  }
  return encode(digest);
}

function encode(digest: Buffer): string {
  const byte = (i: number): number => digest[i] ?? 0;
  let text = "";
  for (let i = 0; i < 5; i++) text += encode64((byte(i) << 16) | (byte(i + 6) << 8) | byte(i === 4 ? 5 : i + 12), 4);
  return text + encode64(byte(11), 2);
}

function md5(parts: readonly Uint8Array[]): Buffer {
  return hash("md5", Buffer.concat(parts), "buffer");
}
