/**
 * Rules for backends that are found by name. With a controller that translates objects of many tenants, a host name must not lead to a
 * Service of another namespace without a ReferenceGrant. In: names and the addresses that they resolve to. Out: only addresses outside the
 * cluster, as far as the rules define it.
 */
import { Networks } from "../base/ip-address.ts";
import type { System } from "./resolver.ts";

export interface LookupRules {
  /** Names that are below one of these are not looked up; with any, no name is completed by search domains. */
  readonly denyDomains: readonly string[];
  /** CIDR. Addresses inside are left out of what names resolve to, and `dynamic` targets cannot name them (dynamic.ts). */
  readonly denyNetworks: readonly string[];
}

/** A host name in the form for comparison: lower case, without trailing dots. */
export function comparableName(host: string): string {
  return host.toLowerCase().replace(/\.+$/, "");
}

/** Whether a name is a domain or below it. */
export function isBelow(host: string, domain: string): boolean {
  const [name, top] = [comparableName(host), comparableName(domain)];
  return name === top || name.endsWith(`.${top}`);
}

/** A lookup was not made, or all addresses that it found were left out. */
class LookupDenied extends Error {}

/** `system` under the rules. */
export function restrictedLookups(system: System, { denyDomains, denyNetworks }: LookupRules): System {
  if (denyDomains.length === 0 && denyNetworks.length === 0) return system;
  const networks = new Networks(denyNetworks);
  return {
    ...system,
    lookup: (host, options, callback) => {
      if (denyDomains.some((domain) => isBelow(host, domain))) {
        const why = `${host} is a name inside the cluster, which this gateway may not look up`;
        process.nextTick(callback, new LookupDenied(why), []);
        return;
      }
      // An absolute name: search domains would make `shop.other` a Service of the namespace `other`.
      const name = denyDomains.length > 0 ? `${comparableName(host)}.` : host;
      system.lookup(name, options, (error, found) => {
        if (error !== null) {
          callback(error, found);
          return;
        }
        const outside = found.filter(({ address }) => !networks.contains(address));
        if (outside.length > 0 || found.length === 0) callback(null, outside);
        else callback(new LookupDenied(`${host} resolves to addresses that this gateway may not connect to`), []);
      });
    },
  };
}
