import { type LookupAddress, lookup } from "node:dns";
import { isIP } from "node:net";
import type { ErrorCode } from "../../base/errors.ts";
import { hasAddressOf } from "../../base/host-addresses.ts";
import type { Logger } from "../../base/log.ts";
import type { IpProtocol } from "../../base/own-sockets.ts";
import { AddressRefused, type AdmittedAddress, type Egress, type LookupRules } from "../../net/egress.ts";
import type { LookupFamily } from "../discovery/dns.ts";
import type { Address } from "../settings/pool-target.ts";
import { LookupLanes } from "./lookup-lanes.ts";
import { type Lookup, restrictedLookup } from "./lookup-rules.ts";
import { findSrv, recordTtl, type SrvRecord } from "./records.ts";
import { ServiceRecords } from "./service-records.ts";

/**
 * Milliseconds for which a result is used without a new lookup; after that it is renewed in the background. `getaddrinfo` does not
 * give TTLs, so this is short: failover by DNS usually works with TTLs of 5 to 60 s. Names that are followed have TTLs (followed-name.ts).
 */
const FRESH_MS = 5000;
/** Milliseconds after its last use when a name is forgotten: `dynamic` targets could otherwise fill the memory with names. */
const FORGET_MS = 300_000;
/** Milliseconds between lookups of a name that fails: doubled from the first to the second value. */
const REPEAT_MIN_MS = 100;
const REPEAT_MAX_MS = 5000;
/** A lookup that fails after this many milliseconds is slow: the next one for its name needs the slow lane. */
const SLOW_MS = 1000;
/** Milliseconds between checks whether another thread has finished its lookup of a name. */
const BUSY_MS = 10;

/** What the resolver needs of the system; replaced in tests. */
export interface System {
  readonly lookup: Lookup;
  /** Milliseconds. */
  readonly now: () => number;
  /** Calls back after this many milliseconds. */
  readonly later: (callback: () => void, ms: number) => void;
  /** The same for work that nobody waits for: it does not keep the process alive. Returns a function that cancels it. */
  readonly idly: (callback: () => void, ms: number) => () => void;
  /** Finds how long the records with these addresses of a name may be kept, in milliseconds; undefined: nothing says so. */
  readonly ttl: (host: string, addresses: readonly string[], callback: (ms: number | undefined) => void) => void;
  /** Finds SRV records. */
  readonly srv: (name: string, callback: (error: Error | null, records: readonly SrvRecord[]) => void) => void;
  /** Whether this host may reach addresses of IPv4 or IPv6. */
  readonly reaches: (family: number) => boolean;
}

/** The system's resolver. */
export const SYSTEM: System = {
  lookup,
  now: () => performance.now(),
  later: (callback, ms) => void setTimeout(callback, ms),
  idly(callback, ms) {
    const timer = setTimeout(callback, ms).unref();
    return () => clearTimeout(timer);
  },
  ttl: recordTtl,
  srv: findSrv,
  reaches: hasAddressOf,
};

type Callback = (addresses: readonly string[], error: string | undefined) => void;

/** One address to connect to, and the name that resolved to it; `` for paths. */
export interface ResolvedAddress {
  readonly address: AdmittedAddress;
  readonly host: string;
}

/** Why there is no address to connect to. */
export interface LocateFailure {
  readonly code: ErrorCode;
  readonly message: string;
}

/** What is known of a host name. */
export interface KnownName {
  /** In use; empty: none has been found. */
  readonly addresses: readonly string[];
  /** Milliseconds since they were found; null: none has been. */
  readonly ageMs: number | null;
  /** Why the last lookup found none: earlier addresses stay in use. */
  readonly error?: string;
}

/** The end of a lookup. */
export interface LookedUp {
  /** Empty: the lookup has failed. */
  readonly addresses: readonly string[];
  readonly error: string | undefined;
  /** Milliseconds until the next lookup is allowed, after a failure. */
  readonly repeatMs: number;
}

interface CachedName {
  readonly host: string;
  readonly family: LookupFamily;
  addresses: readonly string[];
  /** `performance.now()` ms when they were found. */
  foundAt: number;
  error: string | undefined;
  /** `performance.now()` ms from which the entry is renewed on use. */
  renewAt: number;
  usedAt: number;
  failures: number;
  waiting: Callback[] | undefined;
}

/**
 * Resolves host names through the system's resolver (hosts file, search domains), with a cache. A known name is found at once and
 * renewed in the background if stale; if a renewal fails, the last good addresses stay in use.
 */
export class Resolver {
  readonly #family: LookupFamily;
  readonly #egress: Egress;
  readonly #log: Logger | undefined;
  readonly #system: System;
  readonly #lookup: Lookup;
  readonly #lanes: LookupLanes;
  readonly #entries = new Map<string, CachedName>();
  readonly services = new ServiceRecords(this);

  /** `egress` decides which names may be looked up, and which addresses may be connected to. `log`: of lookups, at level `debug`. `lanes`: those of the process. */
  constructor(family: LookupFamily, egress: Egress, log?: Logger, system: System = SYSTEM, lanes = new LookupLanes()) {
    this.#family = family;
    this.#egress = egress;
    this.#log = log;
    this.#system = system;
    this.#lookup = restrictedLookup(system.lookup, egress.lookupRules);
    this.#lanes = lanes;
  }

  /** IPv4 addresses are to be tried before those of IPv6. `family`: of the target, in place of that of all names. */
  prefersIpv4(family = this.#family): boolean {
    return family !== "All";
  }

  get lookupRules(): LookupRules {
    return this.#egress.lookupRules;
  }

  /** The clock and timers. */
  get system(): System {
    return this.#system;
  }

  /**
   * Finds the addresses that may be connected to. Those that egress refuses are left out; if none is left, the failure says why.
   * Calls back once, like `resolve`.
   */
  locate(
    address: Address,
    protocol: IpProtocol,
    callback: (found: readonly ResolvedAddress[], failure: LocateFailure | undefined) => void,
  ): void {
    const source = "discovered" in address ? "discovered" : "named";
    const admit = (host: string, addresses: readonly Address[], error: string | undefined): void => {
      const found: ResolvedAddress[] = [];
      let failure: LocateFailure | undefined =
        error === undefined ? undefined : { code: "TG_DNS_FAILED", message: error };
      for (const each of addresses) {
        const admitted = this.#egress.admit(each, protocol, source);
        if (admitted instanceof AddressRefused) failure ??= admitted;
        else found.push({ address: admitted, host });
      }
      callback(found, found.length > 0 ? undefined : failure);
    };
    if ("path" in address) {
      admit("", [address], undefined);
      return;
    }
    const { host, port, at, dns, srv } = address;
    if (srv !== undefined && at === undefined) {
      this.services.lookUp(srv, dns?.family, ({ servers, error }) => {
        const all = servers.flatMap((server) => server.at.map((each) => ({ host: each, port: server.port ?? port })));
        admit(host, all, error);
      });
      return;
    }
    const resolved: Callback = (hosts, error) =>
      admit(
        host,
        hosts.map((each) => ({ host: each, port })),
        error,
      );
    if (at === undefined) this.resolve(host, resolved, dns?.family);
    else resolved(at, undefined);
  }

  /** Calls back once: at once for addresses and known names, otherwise when the system has responded. */
  resolve(host: string, callback: Callback, family = this.#family): void {
    if (isIP(host) !== 0) {
      callback([host], undefined);
      return;
    }
    const now = this.#system.now();
    const entry = this.#entry(host, family, now);
    if (now >= entry.renewAt && entry.waiting === undefined) this.#renew(entry);
    if (entry.addresses.length > 0) callback(entry.addresses, undefined);
    else if (entry.waiting !== undefined) entry.waiting.push(callback);
    else callback([], entry.error ?? `no address found for ${host}`);
  }

  /** Looks a name up now, unless its last lookup has just failed, or takes part in a lookup that is in progress. Calls back once. */
  lookUp(host: string, callback: (found: LookedUp) => void, family = this.#family): void {
    const entry = this.#entry(host, family, this.#system.now());
    const ended = (): void => {
      const { addresses, error, renewAt } = entry;
      const until = renewAt - this.#system.now();
      // Otherwise the lookup was not made, because the slow lane is taken.
      const repeatMs = until > 0 ? until : REPEAT_MAX_MS;
      callback({ addresses: error === undefined ? addresses : [], error, repeatMs });
    };
    if (entry.waiting !== undefined) entry.waiting.push(ended);
    else if (entry.error !== undefined && this.#system.now() < entry.renewAt) ended();
    else this.#renew(entry, [ended]);
  }

  #entry(host: string, family: LookupFamily, now: number): CachedName {
    const key = this.#keyOf(host, family);
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      entry = {
        host,
        family,
        addresses: [],
        foundAt: 0,
        error: undefined,
        renewAt: 0,
        usedAt: now,
        failures: 0,
        waiting: undefined,
      };
      this.#entries.set(key, entry);
    }
    entry.usedAt = now;
    return entry;
  }

  #keyOf(host: string, family: LookupFamily): string {
    return family === this.#family ? host : `${host} ${family}`;
  }

  /** The name as it is cached, for display; undefined for addresses, and while nothing has asked for it lately. */
  known(host: string, family = this.#family): KnownName | undefined {
    const entry = this.#entries.get(this.#keyOf(host, family));
    if (entry === undefined) return undefined;
    const { addresses, foundAt, error } = entry;
    const ageMs = addresses.length === 0 ? null : this.#system.now() - foundAt;
    return { addresses, ageMs, ...(error !== undefined && { error }) };
  }

  #renew(entry: CachedName, waiting: Callback[] = []): void {
    const { host } = entry;
    // Whoever waits although there are addresses wants new ones.
    const known = entry.addresses.length > 0 && waiting.length === 0;
    const lane = this.#lanes.enter(host, known);
    entry.waiting = undefined;
    // The known addresses, or the last error, stay in use.
    if (known && lane === "busy") return;
    if (lane === "full") {
      const error = entry.error ?? `name servers do not respond for ${host}`;
      entry.error = error;
      for (const callback of waiting) callback([], error);
      return;
    }
    entry.waiting = waiting;
    if (lane === "busy") {
      this.#system.later(() => this.#renew(entry, waiting), BUSY_MS);
      return;
    }
    const family = entry.family === "V4Only" ? 4 : entry.family === "V6Only" ? 6 : 0;
    const order = this.prefersIpv4(entry.family) ? "ipv4first" : "verbatim";
    const start = this.#system.now();
    this.#lookup(host, { all: true, family, order }, (error, found) => {
      const now = this.#system.now();
      this.#logLookup(host, error, found, now - start);
      entry.waiting = undefined;
      const succeeded = error === null && found.length > 0;
      this.#lanes.leave(host, lane, !succeeded && now - start >= SLOW_MS);
      if (succeeded) {
        entry.addresses = found.map((each) => each.address);
        entry.foundAt = now;
        entry.error = undefined;
        entry.failures = 0;
        entry.renewAt = now + FRESH_MS;
      } else {
        entry.error = error === null ? `no address found for ${host}` : error.message;
        entry.renewAt = now + Math.min(REPEAT_MAX_MS, REPEAT_MIN_MS * 2 ** entry.failures++);
      }
      this.#forget(now);
      for (const callback of waiting) callback(entry.addresses, entry.addresses.length > 0 ? undefined : entry.error);
    });
  }

  #logLookup(host: string, error: Error | null, found: readonly LookupAddress[] | undefined, ms: number): void {
    if (this.#log?.enabled("debug") !== true) return;
    const addresses = (found ?? []).map((each) => each.address).join(",");
    const fields = { host, ms: Number(ms.toFixed(3)), addresses, error: error?.message };
    this.#log.debug(error === null ? "resolved" : "not resolved", fields);
  }

  #forget(now: number): void {
    for (const [key, entry] of this.#entries)
      if (now - entry.usedAt > FORGET_MS && entry.waiting === undefined) this.#entries.delete(key);
  }
}
