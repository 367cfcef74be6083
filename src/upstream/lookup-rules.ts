/**
 * Which backends may be found by name. Where a controller translates what many tenants write, a host name must not be a way to a
 * Service of another namespace that no ReferenceGrant opens. In: names and what they resolve to. Out: only what is not inside the
 * cluster, as far as the rules say what is.
 */
import { isIP } from "node:net";
import { Networks } from "../base/ip-address.ts";
import type { DynamicEndpoints } from "./dynamic.ts";
import type { System } from "./resolver.ts";

export interface LookupRules {
  /** Names that are below one of these are not looked up; with any, no name is completed by search domains. */
  readonly denyDomains: readonly string[];
  /** CIDR. Addresses inside are left out of what names resolve to, and `dynamic` targets cannot name them. */
  readonly denyNetworks: readonly string[];
}

export const NO_LOOKUP_RULES: LookupRules = { denyDomains: [], denyNetworks: [] };

/** A host name as it is compared: in lower case, without the dots that make it absolute. */
export function comparableName(host: string): string {
  return host.toLowerCase().replace(/\.+$/, "");
}

/** Whether a name is a domain or below it. */
export function isBelow(host: string, domain: string): boolean {
  const [name, top] = [comparableName(host), comparableName(domain)];
  return name === top || name.endsWith(`.${top}`);
}

/** A lookup was not made, or all that it found was left out. */
class LookupDenied extends Error {}

/** `system` under the rules. */
export function restrictedLookups(system: System, { denyDomains, denyNetworks }: LookupRules): System {
  if (denyDomains.length === 0 && denyNetworks.length === 0) return system;
  const networks = new Networks(denyNetworks);
  return {
    ...system,
    lookup: (host, options, callback) => {
      if (denyDomains.some((domain) => isBelow(host, domain))) {
        const why = `${host} is a name inside the cluster, which backends may not be found by`;
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

/** Targets of `dynamic` backends without the addresses that the rules exclude: clients name those, and nothing is looked up. */
export function restrictedTargets(find: DynamicEndpoints, { denyNetworks }: LookupRules): DynamicEndpoints {
  if (denyNetworks.length === 0) return find;
  const networks = new Networks(denyNetworks);
  return (authority, port, connection) => {
    const host = hostOf(authority);
    return host !== undefined && isIP(host) !== 0 && networks.contains(host)
      ? undefined
      : find(authority, port, connection);
  };
}

/** As URLs read it, which know further spellings of IPv4 addresses, such as `0x7f.1`. */
function hostOf(authority: string): string | undefined {
  return URL.canParse(`http://${authority}/`)
    ? new URL(`http://${authority}/`).hostname.replace(/^\[|\]$/g, "")
    : undefined;
}
