/**
 * Rules for backends that are found by name. With a controller that translates objects of many tenants, a host name must not lead to a
 * Service of another namespace without a ReferenceGrant. In: names and the addresses that they resolve to. Out: only addresses outside the
 * cluster, as far as the rules define it.
 */
import type { LookupAddress } from "node:dns";
import { domainToASCII } from "node:url";
import { Networks } from "../../base/ip-address.ts";
import type { LookupRules } from "../../net/egress.ts";

/** As `dns.lookup`. */
export type Lookup = (
  host: string,
  options: { readonly all: true; readonly family: 0 | 4 | 6; readonly order: "verbatim" | "ipv4first" },
  callback: (error: Error | null, found: readonly LookupAddress[]) => void,
) => void;

/** A host name in the form for comparison: as it is looked up, in lower case, without trailing dots. */
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

/** A lookup was not made, or all addresses that it found were left out. */
class LookupDenied extends Error {}

/** Why a name must not be looked up; undefined if it may. */
export function refusalOfName(host: string, { denyDomains }: Pick<LookupRules, "denyDomains">): string | undefined {
  if (!denyDomains.some((domain) => isBelow(host, domain))) return undefined;
  return `${host} is a name inside the cluster, which this gateway may not look up`;
}

/** `lookup` under the rules. */
export function restrictedLookup(lookup: Lookup, { denyDomains, denyNetworks }: LookupRules): Lookup {
  if (denyDomains.length === 0 && denyNetworks.length === 0) return lookup;
  const networks = new Networks(denyNetworks);
  return (host, options, callback) => {
    const why = refusalOfName(host, { denyDomains });
    if (why !== undefined) {
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
      const outside = found.filter(({ address }) => !networks.isReachedBy(address));
      if (outside.length > 0 || found.length === 0) callback(null, outside);
      else callback(new LookupDenied(`${host} resolves to addresses that this gateway may not connect to`), []);
    });
  };
}
