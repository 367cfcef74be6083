import { isIP } from "node:net";
import { isLoopback } from "../../base/host-addresses.ts";
import { ipBytes } from "../../base/ip-address.ts";

/** One endpoint of a name. */
export interface NamedAddress {
  /** One address, or one of each family: then they are taken for one server, and connections try the second if the first fails. */
  readonly at: readonly string[];
  /** Absent: that of the name. */
  readonly port?: number;
  /** 0: gets requests first; others only while all with a lower rank take none. */
  readonly rank: number;
  /** Its part of the weight of the name. */
  readonly share: number;
}

/** Whether this host may reach addresses of IPv4 or IPv6. */
type Reaches = (family: number) => boolean;

/**
 * The endpoints that the addresses of a name are. One address of each family is one server with two ways to it, as `localhost` is; if there
 * are more, each is an endpoint. Where IPv4 comes first, addresses of IPv6 are backups. Sorted, because answers have them in any order.
 */
export function endpointsOf(
  addresses: readonly string[],
  prefersIpv4: boolean,
  reaches: Reaches,
): readonly NamedAddress[] {
  if (addresses.length === 0) return [];
  const reachable = withoutUnreachable([...new Set(addresses)], reaches);
  const v4 = reachable.filter((address) => isIP(address) === 4);
  const v6 = reachable.filter((address) => isIP(address) === 6);
  if (v4.length <= 1 && v6.length <= 1)
    return [{ at: prefersIpv4 ? [...v4, ...v6] : [...v6, ...v4], rank: 0, share: 1 }];
  const endpoint = (address: string, rank: number): NamedAddress => ({ at: [address], rank, share: 1 });
  const backup = prefersIpv4 && v4.length > 0 ? 1 : 0;
  return [...v4.toSorted().map((each) => endpoint(each, 0)), ...v6.toSorted().map((each) => endpoint(each, backup))];
}

/** Without those of a family that this host cannot reach, unless they are all: many names have addresses of IPv6, and many hosts do not. */
function withoutUnreachable(addresses: readonly string[], reaches: Reaches): readonly string[] {
  const reachable = addresses.filter((address) => {
    const bytes = ipBytes(address);
    return (bytes !== undefined && isLoopback(bytes)) || reaches(isIP(address));
  });
  return reachable.length > 0 ? reachable : addresses;
}
