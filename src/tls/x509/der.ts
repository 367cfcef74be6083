/** The elements of a host's certificate in the distinguished encoding of ASN.1 (ITU-T X.690, "DER"). */

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

/** X.690 8.1.3: up to 127 in one byte, above that the number of the bytes that follow and the length in them. */
export function encodeLength(length: number): Buffer {
  if (length < 0x80) return Buffer.of(length);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Buffer.of(0x80 | bytes.length, ...bytes);
}

/** An element of `tag`, a single byte. */
export function element(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const size = contents.reduce((sum, { length }) => sum + length, 0);
  return Buffer.concat([Buffer.of(tag), encodeLength(size), ...contents]);
}

export function sequence(...elements: readonly Uint8Array[]): Buffer {
  return element(TAG.sequence, ...elements);
}

/** A set of one element: of several, DER fixes the order. */
export function setOf(only: Uint8Array): Buffer {
  return element(TAG.set, only);
}

/** `[tag]`: around a whole element when it is EXPLICIT, in place of its tag when it is IMPLICIT and `primitive`. */
export function tagged(tag: number, form: "explicit" | "primitive", content: Uint8Array): Buffer {
  return element((form === "explicit" ? 0xa0 : 0x80) | tag, content);
}

export const TRUE = element(TAG.boolean, Buffer.of(0xff));

/** A number that is not negative, from its bytes, the highest first. */
export function integer(bytes: Uint8Array): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0);
  const shortest = first === -1 ? Buffer.of(0) : bytes.subarray(first);
  // A high bit that is set would make it negative.
  return (shortest[0] ?? 0) < 0x80 ? element(TAG.integer, shortest) : element(TAG.integer, Buffer.of(0), shortest);
}

/** `unused`: how many bits at the end of the last byte do not count. */
export function bitString(bytes: Uint8Array, unused = 0): Buffer {
  return element(TAG.bitString, Buffer.of(unused), bytes);
}

export function octetString(bytes: Uint8Array): Buffer {
  return element(TAG.octetString, bytes);
}

export function utf8String(text: string): Buffer {
  return element(TAG.utf8String, Buffer.from(text, "utf8"));
}

/** X.690 8.19: an identifier such as `2.5.29.17`, in groups of seven bits. */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...others] = dotted.split(".").map(Number);
  return element(TAG.oid, Buffer.from([first * 40 + second, ...others].flatMap(groups)));
}

/** With seconds; RFC 5280 4.1.2.5 requires another type from 2050 on. */
export function time(date: Date): Buffer {
  const digits = date.toISOString().replace(/\.\d+|[-:T]/g, "");
  return date.getUTCFullYear() < 2050
    ? element(TAG.utcTime, Buffer.from(digits.slice(2), "latin1"))
    : element(TAG.generalizedTime, Buffer.from(digits, "latin1"));
}

/** The lowest seven bits last; all bytes but the last have their high bit set. */
function groups(value: number): number[] {
  const bytes = [value & 0x7f];
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) bytes.unshift((rest & 0x7f) | 0x80);
  return bytes;
}

/** One element that was read. */
export interface Read {
  readonly tag: number;
  readonly content: Buffer;
  /** With its tag and length. */
  readonly whole: Buffer;
}

/** The elements that fill `bytes` one after the other. Throws an Error when they are not DER. */
export function readElements(bytes: Buffer): Read[] {
  const elements: Read[] = [];
  for (let at = 0; at < bytes.length; ) {
    const read = readElement(bytes.subarray(at));
    elements.push(read);
    at += read.whole.length;
  }
  return elements;
}

function readElement(bytes: Buffer): Read {
  const [tag = 0, length = 0x80] = bytes;
  const size = length < 0x80 ? 0 : length & 0x7f;
  // Four bytes are more than any certificate has; 0x80 is a length that DER does not allow.
  if (length === 0x80 || size > 4 || bytes.length < 2 + size) throw new Error("it is not in DER");
  const start = 2 + size;
  const end = start + (size === 0 ? length : bytes.readUIntBE(2, size));
  if (end > bytes.length) throw new Error("it is not in DER");
  return { tag, content: bytes.subarray(start, end), whole: bytes.subarray(0, end) };
}
