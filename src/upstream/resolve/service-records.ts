/**
 * Servers by SRV records (RFC 2782): in, the name of a service such as `_http._tcp.example.com`; out, its servers with their ports, in the order
 * of their priorities. The records come from DNS, the addresses of the hosts that they name from the system like all others, so the rules for
 * names apply to both.
 */
import type { LookupRules } from "../../net/egress.ts";
import type { LookupFamily } from "../discovery/dns.ts";
import { refusalOfName } from "./lookup-rules.ts";
import { endpointsOf, type NamedAddress } from "./named-addresses.ts";
import type { SrvRecord } from "./records.ts";

/** Records of one service that are used, those with the lowest priorities: their hosts are looked up. */
const MAX_RECORDS = 64;
/** Milliseconds for which a result is used again. */
const FRESH_MS = 1000;
/** Milliseconds until a lookup that has failed is repeated. */
const REPEAT_MS = 1000;
/** Milliseconds after its last use when a service is forgotten. */
const FORGET_MS = 300_000;
/** Weight of a record with weight 0, which should be chosen hardly ever if there are others. */
const HARDLY = 0.1;

/** What it needs of the resolver of the thread. */
interface Hosts {
  readonly lookupRules: LookupRules;
  readonly system: {
    readonly now: () => number;
    readonly srv: (name: string, callback: (error: Error | null, records: readonly SrvRecord[]) => void) => void;
    readonly reaches: (family: number) => boolean;
  };
  prefersIpv4(family: LookupFamily | undefined): boolean;
  resolve(
    host: string,
    callback: (addresses: readonly string[], error: string | undefined) => void,
    family: LookupFamily | undefined,
  ): void;
}

/** A service as it was last looked up. */
interface KnownService {
  readonly addresses: readonly string[];
  /** Milliseconds since they were found; null: none has been. */
  readonly ageMs: number | null;
  readonly error?: string;
}

interface LookedUpService {
  /** Empty: the lookup has failed. */
  readonly servers: readonly NamedAddress[];
  readonly error: string | undefined;
  readonly repeatMs: number;
}

interface CachedService extends LookedUpService {
  /** `performance.now()` ms. */
  readonly endedAt: number;
}

type Callback = (found: LookedUpService) => void;

export class ServiceRecords {
  readonly #resolver: Hosts;
  readonly #ended = new Map<string, CachedService>();
  readonly #waiting = new Map<string, Callback[]>();

  constructor(resolver: Hosts) {
    this.#resolver = resolver;
  }

  /** The service as it was last looked up, for display. */
  known(service: string, family: LookupFamily | undefined): KnownService | undefined {
    const known = this.#ended.get(keyOf(service, family));
    if (known === undefined) return undefined;
    const { servers, error, endedAt } = known;
    const ageMs = servers.length === 0 ? null : this.#resolver.system.now() - endedAt;
    return { addresses: servers.flatMap(({ at }) => at), ageMs, ...(error !== undefined && { error }) };
  }

  /** Calls back once. */
  lookUp(service: string, family: LookupFamily | undefined, callback: Callback): void {
    const { system } = this.#resolver;
    const key = keyOf(service, family);
    const known = this.#ended.get(key);
    if (known !== undefined && system.now() - known.endedAt < FRESH_MS) {
      callback(known);
      return;
    }
    const waiting = this.#waiting.get(key);
    if (waiting !== undefined) {
      waiting.push(callback);
      return;
    }
    const callbacks = [callback];
    this.#waiting.set(key, callbacks);
    const ended = (servers: readonly NamedAddress[], error: string | undefined): void => {
      const endedAt = system.now();
      const found = { servers, error: servers.length > 0 ? undefined : error, repeatMs: REPEAT_MS, endedAt };
      this.#waiting.delete(key);
      for (const [each, { endedAt: at }] of this.#ended) if (endedAt - at > FORGET_MS) this.#ended.delete(each);
      this.#ended.set(key, found);
      for (const each of callbacks) each(found);
    };
    const refused = refusalOfName(service, this.#resolver.lookupRules);
    if (refused !== undefined) ended([], refused);
    else system.srv(service, (error, records) => this.#locate(service, family, records, error?.message, ended));
  }

  /** Looks up the hosts of the records. */
  #locate(
    service: string,
    family: LookupFamily | undefined,
    records: readonly SrvRecord[],
    error: string | undefined,
    ended: (servers: readonly NamedAddress[], error: string | undefined) => void,
  ): void {
    // A host `.` says that there is no such service.
    const usable = records.filter(({ name, port }) => name !== "" && name !== "." && port > 0);
    const used = usable.toSorted((a, b) => a.priority - b.priority || byText(a, b)).slice(0, MAX_RECORDS);
    const hosts = new Map<string, readonly string[]>();
    let failure = error ?? `no server found for ${service}`;
    let left = used.length;
    if (left === 0) ended([], failure);
    for (const { name } of used)
      this.#resolver.resolve(
        name,
        (addresses, reason) => {
          hosts.set(name, addresses);
          failure = reason ?? failure;
          if (--left === 0) ended(this.#serversOf(used, hosts, family), failure);
        },
        family,
      );
  }

  #serversOf(
    records: readonly SrvRecord[],
    hosts: ReadonlyMap<string, readonly string[]>,
    family: LookupFamily | undefined,
  ): NamedAddress[] {
    const priorities = [...new Set(records.map(({ priority }) => priority))];
    const prefersIpv4 = this.#resolver.prefersIpv4(family);
    const servers = records.flatMap(({ name, port, priority, weight }) => {
      const endpoints = endpointsOf(hosts.get(name) ?? [], prefersIpv4, this.#resolver.system.reaches);
      return endpoints.map(({ at, rank }) => {
        const alike = endpoints.filter((each) => each.rank === rank).length;
        return { at, port, rank: 2 * priorities.indexOf(priority) + rank, share: (weight || HARDLY) / alike };
      });
    });
    return withoutRepeats(servers);
  }
}

/** Several records may lead to one server: it has the first of their ranks, and the weights that they have there together. */
function withoutRepeats(servers: readonly NamedAddress[]): NamedAddress[] {
  const found = new Map<string, NamedAddress>();
  for (const server of servers) {
    const place = `${server.at.join()} ${server.port}`;
    const known = found.get(place);
    if (known === undefined || server.rank < known.rank) found.set(place, server);
    else if (server.rank === known.rank) found.set(place, { ...known, share: known.share + server.share });
  }
  return [...found.values()];
}

function keyOf(service: string, family: LookupFamily | undefined): string {
  return `${service} ${family}`;
}

function byText(a: SrvRecord, b: SrvRecord): number {
  const [x, y] = [`${a.name}:${a.port}`, `${b.name}:${b.port}`];
  return x < y ? -1 : x > y ? 1 : 0;
}
