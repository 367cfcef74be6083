import { type LookupAddress, lookup } from "node:dns";
import { isIP } from "node:net";
import type { ErrorCode } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { IpProtocol } from "../../base/own-sockets.ts";
import { AddressRefused, type AdmittedAddress, type Egress } from "../../net/egress.ts";
import type { Address } from "../settings/pool-target.ts";
import { LookupLanes } from "./lookup-lanes.ts";
import { type Lookup, restrictedLookup } from "./lookup-rules.ts";

export type LookupFamily = "All" | "Auto" | "V4Preferred" | "V4Only" | "V6Only";

/**
 * Milliseconds for which a result is used without a new lookup; after that it is renewed in the background. `getaddrinfo` does not
 * give TTLs, so this is short: failover by DNS usually works with TTLs of 5 to 60 s.
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
}

/** The system's resolver. */
export const SYSTEM: System = {
  lookup,
  now: () => performance.now(),
  later: (callback, ms) => void setTimeout(callback, ms),
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

interface CachedName {
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

  /** `egress` decides which names may be looked up, and which addresses may be connected to. `log`: of lookups, at level `debug`. `lanes`: those of the process. */
  constructor(family: LookupFamily, egress: Egress, log?: Logger, system: System = SYSTEM, lanes = new LookupLanes()) {
    this.#family = family;
    this.#egress = egress;
    this.#log = log;
    this.#system = system;
    this.#lookup = restrictedLookup(system.lookup, egress.lookupRules);
    this.#lanes = lanes;
  }

  /** IPv4 addresses are to be tried before those of IPv6. */
  get prefersIpv4(): boolean {
    return this.#family !== "All";
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
    const { host, port } = address;
    this.resolve(host, (hosts, error) =>
      admit(
        host,
        hosts.map((each) => ({ host: each, port })),
        error,
      ),
    );
  }

  /** Calls back once: at once for addresses and known names, otherwise when the system has responded. */
  resolve(host: string, callback: Callback): void {
    if (isIP(host) !== 0) {
      callback([host], undefined);
      return;
    }
    const now = this.#system.now();
    let entry = this.#entries.get(host);
    if (entry === undefined) {
      entry = {
        addresses: [],
        foundAt: 0,
        error: undefined,
        renewAt: 0,
        usedAt: now,
        failures: 0,
        waiting: undefined,
      };
      this.#entries.set(host, entry);
    }
    entry.usedAt = now;
    if (now >= entry.renewAt && entry.waiting === undefined) this.#renew(host, entry);
    if (entry.addresses.length > 0) callback(entry.addresses, undefined);
    else if (entry.waiting !== undefined) entry.waiting.push(callback);
    else callback([], entry.error ?? `no address found for ${host}`);
  }

  /** The name as it is cached, for display; undefined for addresses, and while nothing has asked for it lately. */
  known(host: string): KnownName | undefined {
    const entry = this.#entries.get(host);
    if (entry === undefined) return undefined;
    const { addresses, foundAt, error } = entry;
    const ageMs = addresses.length === 0 ? null : this.#system.now() - foundAt;
    return { addresses, ageMs, ...(error !== undefined && { error }) };
  }

  #renew(host: string, entry: CachedName, waiting: Callback[] = []): void {
    const known = entry.addresses.length > 0;
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
      this.#system.later(() => this.#renew(host, entry, waiting), BUSY_MS);
      return;
    }
    const family = this.#family === "V4Only" ? 4 : this.#family === "V6Only" ? 6 : 0;
    const order = this.prefersIpv4 ? "ipv4first" : "verbatim";
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
    for (const [host, entry] of this.#entries)
      if (now - entry.usedAt > FORGET_MS && entry.waiting === undefined) this.#entries.delete(host);
  }
}
