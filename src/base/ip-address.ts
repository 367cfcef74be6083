/**
 * IP addresses as text: one parser and one canonical form for sockets, PROXY headers, lists of networks and expressions. If one address had
 * two spellings, a rule that denies one would let the other through.
 */
import { isIPv4, isIPv6 } from "node:net";

/**
 * The canonical form of an address: dotted decimal, or RFC 5952; an IPv4 address that is mapped to IPv6 (`::ffff:192.0.2.1`, RFC 4291
 * 2.5.5.2) is the IPv4 address. undefined = not an address, or one with a zone (`fe80::1%eth0`), which is meaningful on one machine only.
 */
export function canonicalAddress(text: string): string | undefined {
  // Both reject leading zeros in decimal numbers, which some programs read as octal.
  if (isIPv4(text)) return text;
  return isIPv6(text) && !text.includes("%") ? formatIpv6(parseGroups(text)) : undefined;
}

/** The eight groups of an address as IPv6, to which IPv4 is mapped (RFC 4291 2.5.5.2); without its zone. undefined = not an address. */
export function groupsOfAddress(text: string): readonly number[] | undefined {
  const [address = ""] = text.split("%", 1);
  if (isIPv4(address)) return parseGroups(`::ffff:${address}`);
  return isIPv6(address) ? parseGroups(address) : undefined;
}

/** The canonical form of 16 bytes. */
export function addressOfBytes(bytes: Buffer): string {
  return formatIpv6(Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(2 * i)));
}

/**
 * The bytes of an IP address: 4 or 16, undefined for other text. An IPv6 address that embeds an IPv4 address gives the latter: systems and
 * translators deliver `::ffff:127.0.0.1` and `64:ff9b::7f00:1` to the same place as `127.0.0.1`.
 */
export function ipBytes(text: string): Uint8Array | undefined {
  const [address = ""] = text.split("%", 1);
  if (isIPv4(address)) return Uint8Array.from(address.split("."), Number);
  if (!isIPv6(address)) return undefined;
  const bytes = Uint8Array.from(parseGroups(address).flatMap((group) => [group >> 8, group & 0xff]));
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

/** The eight groups of a valid address. */
function parseGroups(text: string): number[] {
  const dotted = /(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(text);
  const [, a = 0, b = 0, c = 0, d = 0] = dotted?.map(Number) ?? [];
  const hex =
    dotted === null
      ? text
      : `${text.slice(0, dotted.index)}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  const [before = "", after] = hex.split("::");
  const head = groupsOf(before);
  if (after === undefined) return head;
  const tail = groupsOf(after);
  return [...head, ...new Array<number>(8 - head.length - tail.length).fill(0), ...tail];
}

function groupsOf(text: string): number[] {
  return text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16));
}

/** RFC 5952: the longest run of two or more zero groups, the first of equals, becomes `::`. */
function formatIpv6(groups: readonly number[]): string {
  const [, , , , , , high = 0, low = 0] = groups;
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff)
    return [high >> 8, high & 255, low >> 8, low & 255].join(".");
  let best = { at: 0, length: 1 };
  for (let at = 0; at < 8; at++) {
    let length = 0;
    while (groups[at + length] === 0) length++;
    if (length > best.length) best = { at, length };
  }
  const text = (from: number, to: number): string =>
    groups
      .slice(from, to)
      .map((group) => group.toString(16))
      .join(":");
  return best.length === 1 ? text(0, 8) : `${text(0, best.at)}::${text(best.at + best.length, 8)}`;
}

/** An address, or a network in CIDR notation. */
interface Network {
  /** Canonical. */
  readonly address: string;
  readonly family: "ipv4" | "ipv6";
  readonly bits: number;
}

/** `192.0.2.7`, `10.0.0.0/8`, `2001:db8::/32`; undefined = neither. Mapped networks are those of IPv4. */
export function parseNetwork(text: string): Network | undefined {
  const [written = "", length, ...rest] = text.split("/");
  const address = canonicalAddress(written);
  if (address === undefined || rest.length > 0) return undefined;
  const family = isIPv4(address) ? "ipv4" : "ipv6";
  const most = family === "ipv4" ? 32 : 128;
  if (length === undefined) return { address, family, bits: most };
  if (!/^(?:0|[1-9]\d{0,2})$/.test(length)) return undefined;
  const mapped = family === "ipv4" && written.includes(":");
  const bits = Number(length) - (mapped ? 96 : 0);
  return bits >= 0 && bits <= most ? { address, family, bits } : undefined;
}

/**
 * A list of addresses and networks. On a busy machine, a lookup took 2.0 µs of CPU in a list of one and 2.8 µs in a list of 10,000, most of
 * it for reading the address.
 */
export class Networks {
  readonly #lists: Readonly<Record<Network["family"], SortedNetworks>>;

  /** Texts that `parseNetwork` accepts. */
  constructor(networks: readonly string[]) {
    const lists: Record<Network["family"], NamedRange[]> = { ipv4: [], ipv6: [] };
    for (const text of networks) {
      const network = parseNetwork(text);
      if (network === undefined) throw new Error(`${text} is not a network`);
      lists[network.family].push(rangeOf(network, text));
    }
    this.#lists = { ipv4: new SortedNetworks(lists.ipv4), ipv6: new SortedNetworks(lists.ipv6) };
  }

  /** The text of the widest network that contains the address of a peer; undefined = no network does. A zone is ignored. */
  find(peer: string): string | undefined {
    const groups = groupsOfAddress(peer);
    return groups && this.findGroups(groups);
  }

  /** The same for an address that `groupsOfAddress` has read. */
  findGroups(groups: readonly number[]): string | undefined {
    const isMapped = groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0);
    return this.#lists[isMapped ? "ipv4" : "ipv6"].find(String.fromCharCode(...groups));
  }

  /** Whether the address of a peer is in one of them. A zone is ignored. */
  contains(peer: string): boolean {
    return this.find(peer) !== undefined;
  }

  /** Whether connections to an address may end in one of them: also of an IPv4 address inside an IPv6 one, such as NAT64. */
  isReachedBy(address: string): boolean {
    const bytes = ipBytes(address);
    return this.contains(address) || (bytes?.length === 4 && this.contains(bytes.join(".")));
  }
}

/**
 * The addresses of a network from the first to the last. Each is a string of eight UTF-16 units, one for each group of an IPv6 address
 * (IPv4 is mapped to it): such strings compare like numbers of 128 bits, without an object for each.
 */
interface NamedRange {
  readonly first: string;
  readonly last: string;
  readonly text: string;
}

function rangeOf({ address, family, bits }: Network, text: string): NamedRange {
  const groups = groupsOfAddress(address) ?? [];
  const fixed = family === "ipv4" ? bits + 96 : bits;
  // The bits of each group that all addresses of the network share.
  const masks = groups.map((_, i) => (0xffff << (16 - Math.min(16, Math.max(0, fixed - 16 * i)))) & 0xffff);
  return {
    first: String.fromCharCode(...groups.map((group, i) => group & (masks[i] ?? 0))),
    last: String.fromCharCode(...groups.map((group, i) => group | (~(masks[i] ?? 0) & 0xffff))),
    text,
  };
}

/** Networks of one family in order. Two networks are apart or one contains the other; networks inside of others are left out. */
class SortedNetworks {
  readonly #ranges: readonly NamedRange[];

  constructor(ranges: NamedRange[]) {
    const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
    const kept: NamedRange[] = [];
    for (const range of ranges.sort((a, b) => compare(a.first, b.first) || compare(b.last, a.last))) {
      const before = kept.at(-1);
      if (before === undefined || before.last < range.first) kept.push(range);
    }
    this.#ranges = kept;
  }

  find(address: string): string | undefined {
    let from = 0;
    let to = this.#ranges.length;
    // The last network that begins at or before the address.
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((this.#ranges[middle] as NamedRange).first <= address) from = middle + 1;
      else to = middle;
    }
    const range = this.#ranges[from - 1];
    return range !== undefined && address <= range.last ? range.text : undefined;
  }
}
