/**
 * What only DNS knows: SRV records, and how long addresses may be kept. The system's resolver finds addresses and gives no TTL (decision 78),
 * so another library asks for the records too. It ignores the hosts file and search domains: if its answer has other addresses, the name
 * does not come from DNS alone, and its TTL is unknown.
 */
import { Resolver } from "node:dns";
import { isIP } from "node:net";

/** Milliseconds for an answer. Nothing waits for it. */
const TIMEOUT = 1000;
/** For SRV records, for which requests may wait; twice. */
const SRV_TIMEOUT = 2000;

/** As Node.js has it. */
export interface SrvRecord {
  readonly name: string;
  readonly port: number;
  readonly priority: number;
  readonly weight: number;
}

interface TimedRecord {
  readonly address: string;
  /** Seconds. */
  readonly ttl: number;
}

/** The least TTL of the records of a name, in milliseconds; undefined if they are not those that `addresses` come from. */
export function recordTtl(
  host: string,
  addresses: readonly string[],
  callback: (ms: number | undefined) => void,
  // A new one reads the system's name servers again.
  resolver = new Resolver({ timeout: TIMEOUT, tries: 1 }),
): void {
  const families = [...new Set(addresses.map(isIP))];
  let left = families.length;
  let least = Number.POSITIVE_INFINITY;
  const ended = (wanted: readonly string[]) => (error: Error | null, records: readonly TimedRecord[] | undefined) => {
    const found = new Set(error === null ? records?.map(({ address }) => address) : []);
    const ttls = wanted.every((address) => found.has(address)) ? (records ?? []).map(({ ttl }) => ttl) : [-1];
    least = Math.min(least, ...ttls);
    if (--left === 0) callback(least < 0 || !Number.isFinite(least) ? undefined : least * 1000);
  };
  for (const family of families) {
    const done = ended(addresses.filter((address) => isIP(address) === family));
    if (family === 6) resolver.resolve6(host, { ttl: true }, done);
    else resolver.resolve4(host, { ttl: true }, done);
  }
}

/** The SRV records of a name. */
export function findSrv(
  name: string,
  callback: (error: Error | null, records: readonly SrvRecord[]) => void,
  resolver = new Resolver({ timeout: SRV_TIMEOUT, tries: 2 }),
): void {
  resolver.resolveSrv(name, (error, records) => callback(error, error === null ? records : []));
}
