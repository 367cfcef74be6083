/**
 * Which backends may be found by name. Where a controller translates what many tenants write, a host name must not be a way to a
 * Service of another namespace that no ReferenceGrant opens. In: names and what they resolve to. Out: only what is not inside the
 * cluster, as far as the rules say what is.
 */
import type { LookupAddress } from "node:dns";
import { BlockList, isIP, isIPv6 } from "node:net";
import { domainToASCII } from "node:url";
import { ipBytes } from "../base/ip-bytes.ts";
import type { LookupRules } from "../net/egress.ts";
import type { DynamicEndpoints } from "./dynamic.ts";

/** As `dns.lookup`. */
export type Lookup = (
  host: string,
  options: { readonly all: true; readonly family: 0 | 4 | 6; readonly order: "verbatim" | "ipv4first" },
  callback: (error: Error | null, found: readonly LookupAddress[]) => void,
) => void;

/** A host name as it is compared: as it is looked up, in lower case, without the dots that make it absolute. */
export function comparableName(host: string): string {
  // Lookups read `cluster。local` as `cluster.local`.
  const ascii = /^\p{ASCII}*$/u.test(host) ? host : domainToASCII(host) || host;
  return ascii.toLowerCase().replace(/\.+$/, "");
}

/** Whether a name is a domain or below it. */
export function isBelow(host: string, domain: string): boolean {
  const [name, top] = [comparableName(host), comparableName(domain)];
  return name === top || name.endsWith(`.${top}`);
}

/** Networks in CIDR notation as one list. */
export class Networks {
  readonly #list = new BlockList();

  constructor(networks: readonly string[]) {
    for (const network of networks) {
      const [address = "", bits] = network.split("/");
      const family = isIPv6(address) ? "ipv6" : "ipv4";
      if (bits === undefined) this.#list.addAddress(address, family);
      else this.#list.addSubnet(address, Number(bits), family);
    }
  }

  /** `address`: an IP address; IPv4 also inside IPv6. */
  has(address: string): boolean {
    const bytes = ipBytes(address);
    if (bytes?.length === 4) return this.#list.check(bytes.join("."), "ipv4");
    return this.#list.check(address, isIPv6(address) ? "ipv6" : "ipv4");
  }
}

/** A lookup was not made, or all that it found was left out. */
class LookupDenied extends Error {}

/** `lookup` under the rules. */
export function restrictedLookup(lookup: Lookup, { denyDomains, denyNetworks }: LookupRules): Lookup {
  if (denyDomains.length === 0 && denyNetworks.length === 0) return lookup;
  const networks = new Networks(denyNetworks);
  return (host, options, callback) => {
    if (denyDomains.some((domain) => isBelow(host, domain))) {
      const why = `${host} is a name inside the cluster, which backends may not be found by`;
      process.nextTick(callback, new LookupDenied(why), []);
      return;
    }
    // An absolute name: search domains would make `shop.other` a Service of the namespace `other`.
    const name = denyDomains.length > 0 ? `${comparableName(host)}.` : host;
    lookup(name, options, (error, found) => {
      if (error !== null) {
        callback(error, found);
        return;
      }
      const outside = found.filter(({ address }) => !networks.has(address));
      if (outside.length > 0 || found.length === 0) callback(null, outside);
      else callback(new LookupDenied(`${host} resolves to addresses that this gateway may not connect to`), []);
    });
  };
}

/** Targets of `dynamic` backends without the addresses that the rules exclude: clients name those, and nothing is looked up. */
export function restrictedTargets(find: DynamicEndpoints, { denyNetworks }: LookupRules): DynamicEndpoints {
  if (denyNetworks.length === 0) return find;
  const networks = new Networks(denyNetworks);
  return (authority, port, connection) => {
    const host = hostOf(authority);
    return host !== undefined && isIP(host) !== 0 && networks.has(host) ? undefined : find(authority, port, connection);
  };
}

/** As URLs read it, which know further spellings of IPv4 addresses, such as `0x7f.1`. */
function hostOf(authority: string): string | undefined {
  return URL.canParse(`http://${authority}/`)
    ? new URL(`http://${authority}/`).hostname.replace(/^\[|\]$/g, "")
    : undefined;
}
