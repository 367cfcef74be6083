import { isIPv4, isIPv6 } from "node:net";

/**
 * The bytes of an IP address: 4 or 16, undefined for other text. An IPv6 address that embeds an IPv4 address gives the latter: systems and
 * translators deliver `::ffff:127.0.0.1` and `64:ff9b::7f00:1` to the same place as `127.0.0.1`.
 */
export function ipBytes(text: string): Uint8Array | undefined {
  const [address = ""] = text.split("%", 1);
  if (isIPv4(address)) return v4Bytes(address);
  if (!isIPv6(address)) return undefined;
  const bytes = v6Bytes(address);
  const at = EMBEDDED.find(({ prefix }) => prefix.every((byte, i) => bytes[i] === byte))?.at;
  // `::` and `::1` are addresses of their own, not IPv4-compatible ones.
  if (at === undefined || (at === 12 && bytes.subarray(0, 15).every((byte) => byte === 0))) return bytes;
  return bytes.subarray(at, at + 4);
}

/** Prefixes of IPv6 addresses that contain an IPv4 address, and where it begins. */
const EMBEDDED: readonly { readonly prefix: readonly number[]; readonly at: number }[] = [
  // IPv4-mapped (RFC 4291 2.5.5.2) and IPv4-compatible (2.5.5.1).
  { prefix: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff], at: 12 },
  { prefix: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], at: 12 },
  // IPv4-translated (RFC 7915 2.1).
  { prefix: [0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0], at: 12 },
  // NAT64: the well-known prefix (RFC 6052 2.1), and the local one in the form with 96 bits (RFC 8215).
  { prefix: [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0], at: 12 },
  { prefix: [0, 0x64, 0xff, 0x9b, 0, 1, 0, 0, 0, 0, 0, 0], at: 12 },
  // 6to4 (RFC 3056).
  { prefix: [0x20, 0x02], at: 2 },
];

function v4Bytes(text: string): Uint8Array {
  return Uint8Array.from(text.split("."), Number);
}

/** `text` is a valid IPv6 address without a zone. */
function v6Bytes(text: string): Uint8Array {
  const bytes = new Uint8Array(16);
  const [left = "", right] = text.split("::");
  const head = groupBytes(left);
  bytes.set(head);
  if (right === undefined) return bytes;
  const tail = groupBytes(right);
  bytes.set(tail, 16 - tail.length);
  return bytes;
}

function groupBytes(text: string): number[] {
  if (text === "") return [];
  return text.split(":").flatMap((group) => {
    if (group.includes(".")) return [...v4Bytes(group)];
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}
