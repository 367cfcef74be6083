/** IP addresses and networks as values, with their functions. */
import ipaddr from "ipaddr.js";
import { canonicalAddress } from "../../base/ip-address.ts";
import { fn, method, type Overload } from "../environment/overload.ts";
import { BOOL, INT, opaque, STRING } from "../environment/types.ts";
import { charge } from "../values/budget.ts";
import { type Failure, fail } from "../values/failure.ts";
import { CelOpaque } from "../values/types.ts";

const IP = opaque("net.IP");
const CIDR = opaque("net.CIDR");

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** An IP address. Those that wrap an IPv4 address in IPv6 are taken as the IPv4 address. */
class CelIp extends CelOpaque {
  readonly typeName = "net.IP";
  readonly address: Address;

  constructor(address: Address) {
    super();
    this.address = address;
  }

  equals(other: CelOpaque): boolean {
    return other instanceof CelIp && this.toString() === other.toString();
  }

  override toString(): string {
    return textOf(this.address);
  }
}

/** A network: an address and the length of its prefix. */
class CelCidr extends CelOpaque {
  readonly typeName = "net.CIDR";
  readonly address: Address;
  readonly prefix: number;
  /** IPv4 networks as numbers, since most are; the mask is of 32 bits. */
  readonly #mask: number;
  readonly #network: number | undefined;

  constructor(address: Address, prefix: number) {
    super();
    this.address = address;
    this.prefix = prefix;
    this.#mask = prefix === 0 ? 0 : (-1 << (32 - prefix)) | 0;
    const number = parseIpv4(textOf(address));
    this.#network = address.kind() === "ipv4" && number !== undefined ? number & this.#mask : undefined;
  }

  /** Whether the address, as text, is in the network; undefined when it is not an address. */
  containsText(text: string): boolean | undefined {
    const number = parseIpv4(text);
    if (number !== undefined) return this.#network !== undefined && (number & this.#mask) === this.#network;
    const address = parseAddress(text);
    return address === undefined ? undefined : this.contains(address);
  }

  contains(address: Address): boolean {
    return (
      address.kind() === this.address.kind() && address.match(this.address as ipaddr.IPv4 & ipaddr.IPv6, this.prefix)
    );
  }

  equals(other: CelOpaque): boolean {
    return other instanceof CelCidr && this.toString() === other.toString();
  }

  override toString(): string {
    return `${textOf(this.address)}/${this.prefix}`;
  }
}

function textOf(address: Address): string {
  return address.kind() === "ipv6" ? (address as ipaddr.IPv6).toRFC5952String() : address.toString();
}

/** Dotted decimal as a signed 32-bit number, without an object; undefined when the text is something else. */
function parseIpv4(text: string): number | undefined {
  if (text.length > 15) return undefined;
  let result = 0;
  let part = -1;
  let dots = 0;
  for (let i = 0; i < text.length; i++) {
    const digit = text.charCodeAt(i) - 48;
    if (digit >= 0 && digit <= 9) {
      if (part === 0) return undefined;
      part = part === -1 ? digit : part * 10 + digit;
      if (part > 255) return undefined;
    } else {
      if (digit !== -2 || part === -1) return undefined;
      result = (result << 8) | part;
      part = -1;
      dots++;
    }
  }
  return dots === 3 && part !== -1 ? (result << 8) | part : undefined;
}

/** Steps of reading an address; longer texts are not addresses. */
const PER_ADDRESS = 1024;

function parseAddress(text: string): Address | undefined {
  charge(PER_ADDRESS);
  const address = text.length > 60 ? undefined : canonicalAddress(text);
  return address === undefined ? undefined : ipaddr.parse(address);
}

function ip(text: string): CelIp | Failure {
  const address = parseAddress(text);
  return address === undefined ? fail(`${JSON.stringify(text.slice(0, 60))} is not an IP address`) : new CelIp(address);
}

function cidr(text: string): CelCidr | Failure {
  // The longest is an IPv6 address with its prefix.
  if (text.length > 64) return fail(`${JSON.stringify(text.slice(0, 60))} is not a network such as 10.0.0.0/8`);
  const slash = text.lastIndexOf("/");
  const address = slash === -1 ? undefined : parseAddress(text.slice(0, slash));
  const prefix = /^\d{1,3}$/.test(text.slice(slash + 1)) ? Number(text.slice(slash + 1)) : Number.NaN;
  if (address === undefined || !(prefix <= (address.kind() === "ipv4" ? 32 : 128)))
    return fail(`${JSON.stringify(text.slice(0, 60))} is not a network such as 10.0.0.0/8`);
  return new CelCidr(address, prefix);
}

function masked({ address, prefix }: CelCidr): CelCidr {
  const family = address.kind() === "ipv4" ? ipaddr.IPv4 : ipaddr.IPv6;
  return new CelCidr(family.networkAddressFromCIDR(`${textOf(address)}/${prefix}`), prefix);
}

function containsCidr(outer: CelCidr, inner: CelCidr): boolean {
  return inner.prefix >= outer.prefix && outer.contains(inner.address);
}

const range = (name: string, ranges: readonly string[], member = true): Overload =>
  method(name, [IP], BOOL, ({ address }: CelIp) => ranges.includes(address.range()) === member);

const LINK_LOCAL_MULTICAST = [cidr("224.0.0.0/24"), cidr("ff02::/16")];

/** IP addresses and networks, as Kubernetes has them in its CEL libraries. */
export const NETWORK: readonly Overload[] = [
  { ...fn("ip", [STRING], IP, ip), mustWork: true },
  { ...fn("cidr", [STRING], CIDR, cidr), mustWork: true },
  fn("isIP", [STRING], BOOL, (text: string) => parseAddress(text) !== undefined),
  fn("isCIDR", [STRING], BOOL, (text: string) => cidr(text) instanceof CelCidr),
  fn("ip.isCanonical", [STRING], BOOL, (text: string) => String(ip(text)) === text),
  fn("string", [IP], STRING, String),
  fn("string", [CIDR], STRING, String),
  method("family", [IP], INT, ({ address }: CelIp) => (address.kind() === "ipv4" ? 4n : 6n)),
  range("isUnspecified", ["unspecified"]),
  range("isLoopback", ["loopback"]),
  range("isLinkLocalUnicast", ["linkLocal"]),
  method("isLinkLocalMulticast", [IP], BOOL, ({ address }: CelIp) =>
    LINK_LOCAL_MULTICAST.some((network) => network instanceof CelCidr && network.contains(address)),
  ),
  range("isGlobalUnicast", ["unspecified", "loopback", "linkLocal", "multicast", "broadcast"], false),
  method("containsIP", [CIDR, IP], BOOL, (network: CelCidr, { address }: CelIp) => network.contains(address)),
  method(
    "containsIP",
    [CIDR, STRING],
    BOOL,
    (network: CelCidr, text: string) => network.containsText(text) ?? ip(text),
  ),
  method("containsCIDR", [CIDR, CIDR], BOOL, containsCidr),
  method("containsCIDR", [CIDR, STRING], BOOL, (network: CelCidr, text: string) => {
    const inner = cidr(text);
    return inner instanceof CelCidr ? containsCidr(network, inner) : inner;
  }),
  method("ip", [CIDR], IP, ({ address }: CelCidr) => new CelIp(address)),
  method("masked", [CIDR], CIDR, masked),
  method("prefixLength", [CIDR], INT, ({ prefix }: CelCidr) => BigInt(prefix)),
];
