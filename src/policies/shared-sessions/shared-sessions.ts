import { createHash, randomBytes } from "node:crypto";
import { BroadcastChannel } from "node:worker_threads";
import { BoundedCache } from "../../base/bounded-cache.ts";
import { seconds } from "../../base/dates.ts";
import type { Session } from "./session.ts";

/** How a refresh ended. All threads of the process learn it. */
export type Renewal =
  | { readonly state: "renewed"; readonly session: Session }
  /** The provider does not accept the refresh token: it was revoked, used twice or has expired. */
  | { readonly state: "refused"; readonly why: string }
  /** Nothing is known about the token; the refresh may be tried again at `retryAt`, in Unix seconds. */
  | { readonly state: "failed"; readonly why: string; readonly retryAt: number };

/** Leases of refreshes, 8 bytes each. Two sessions with the same slot take it from each other, and can then be refreshed twice. */
const LEASES = 65_536;
/** Revocations at a time, 16 bytes each. */
const REVOCATIONS = 65_536;
/** Neighbouring slots that an entry may use. */
const WINDOW = 16;
/** Seconds: longer than a call to the token endpoint may take. */
const LEASE = 15;
/** Seconds for which threads that are busy may not have noticed that a refresh has ended. */
const DONE = 60;
/** Milliseconds to wait for the result of another thread whose refresh has ended. */
const DELIVERY_MS = 1000;
/** Seconds before the next attempt after a failure. */
export const RETRY = 5;
/** Renewals that a thread remembers, for requests that still carry the old cookie. */
const MAX_KNOWN = 8192;
/** Characters. */
const MAX_KNOWN_WEIGHT = 16 * 1024 * 1024;
/** Times of leases count from here, in Unix seconds, so that 31 bits last until 2092. */
const EPOCH = 1_700_000_000;
/** Where the two words that are not part of a table begin. */
const COMMON = 8 * LEASES + 16 * REVOCATIONS;

/** Memory for the sessions of a process, almost all zeroes. The system allocates its pages as they are used. */
export function sessionMemory(): SharedArrayBuffer {
  const memory = new SharedArrayBuffer(COMMON + 8);
  new Uint32Array(memory, COMMON, 2)[1] = randomBytes(4).readUInt32LE();
  return memory;
}

/** Identifies what is revoked: a login, or all of one user. `parts` are not ambiguous together. */
export function revocationKey(...parts: readonly string[]): bigint {
  const key = createHash("sha256").update(JSON.stringify(parts)).digest().readBigInt64LE();
  return key === 0n ? 1n : key;
}

/**
 * What the threads of a process know together about sessions, which otherwise live in cookies: which of them are being refreshed, so
 * that each is refreshed once, and which are revoked. Other processes know nothing of it (docs/policies/oidc.md).
 */
export class SharedSessions {
  readonly memory: SharedArrayBuffer;
  /** One word per lease: upper half tag, lower half time and `done`. A single exchange changes all of it. */
  readonly #leases: BigInt64Array;
  readonly #revoked: BigInt64Array;
  /** Unix seconds when a revocation may be forgotten; 0 = a free slot. */
  readonly #until: Uint32Array;
  /** Sessions that began at this time or before are revoked. */
  readonly #since: Uint32Array;
  /** Word 0: the end of the latest revocation. Word 1: names the channel of this memory. */
  readonly #common: Uint32Array;
  readonly #known = new BoundedCache<Renewal>(MAX_KNOWN, MAX_KNOWN_WEIGHT, weigh);
  readonly #flights = new Map<string, Promise<Renewal>>();
  readonly #waiting = new Map<string, (renewal: Renewal) => void>();
  #channel: BroadcastChannel | undefined;

  constructor(memory = sessionMemory()) {
    this.memory = memory;
    this.#leases = new BigInt64Array(memory, 0, LEASES);
    this.#revoked = new BigInt64Array(memory, 8 * LEASES, REVOCATIONS);
    this.#until = new Uint32Array(memory, 8 * (LEASES + REVOCATIONS), REVOCATIONS);
    this.#since = new Uint32Array(memory, 8 * LEASES + 12 * REVOCATIONS, REVOCATIONS);
    this.#common = new Uint32Array(memory, COMMON, 2);
  }

  /** Takes part in what other threads report. Call before the first request, else their results are missed. */
  listen(): void {
    if (this.#channel !== undefined) return;
    const channel = new BroadcastChannel(`tracegate oidc renewals ${this.#common[1]}`);
    channel.onmessage = (event) => {
      // Only this class posts to the channel.
      const { data } = event as { data: { readonly generation: string; readonly renewal: Renewal } };
      this.#learn(data.generation, data.renewal);
    };
    // It must not keep a thread alive.
    (channel as { unref?: () => void }).unref?.();
    this.#channel = channel;
  }

  /** What became of a session that a client still has in this generation; undefined if it is not known to have been refreshed. */
  renewal(generation: string): Renewal | undefined {
    const known = this.#known.get(generation);
    return known?.state === "failed" && known.retryAt <= seconds() ? undefined : known;
  }

  /** Whether a thread refreshes this generation now. */
  refreshing(generation: string): boolean {
    const { slot, tag } = leaseOf(generation);
    return stateOf(Atomics.load(this.#leases, slot), tag) === "taken";
  }

  /** Refreshes a generation once in the process: `run` is called unless another request does it, whose result is then returned. */
  once(generation: string, run: () => Promise<Renewal>): Promise<Renewal> {
    const known = this.renewal(generation);
    if (known !== undefined) return Promise.resolve(known);
    const flight = this.#flights.get(generation);
    if (flight !== undefined) return flight;
    const state = this.#claim(generation);
    const started = state === "won" ? this.#run(generation, run) : this.#wait(generation, state);
    const renewal = started.finally(() => this.#flights.delete(generation));
    this.#flights.set(generation, renewal);
    return renewal;
  }

  /** Revokes sessions with this key that began at `since` or before, until `until`; false if there is no room. Unix seconds. */
  revoke(key: bigint, since: number, until: number): boolean {
    const slot = this.#slotFor(key, until);
    if (slot === undefined) return false;
    Atomics.store(this.#since, slot, since);
    Atomics.store(this.#revoked, slot, key);
    for (let latest = Atomics.load(this.#common, 0); latest < until; ) {
      const seen = Atomics.compareExchange(this.#common, 0, latest, until);
      if (seen === latest) break;
      latest = seen;
    }
    return true;
  }

  /** Whether one of these keys is revoked for a session that began at `began`. */
  isRevoked(keys: readonly bigint[], began: number, now = seconds()): boolean {
    // Most gateways never see a revocation.
    if (Atomics.load(this.#common, 0) <= now) return false;
    return keys.some((key) => {
      for (let i = 0; i < WINDOW; i++) {
        const slot = slotOf(key, i);
        if (Atomics.load(this.#revoked, slot) !== key || Atomics.load(this.#until, slot) <= now) continue;
        if (began <= Atomics.load(this.#since, slot)) return true;
      }
      return false;
    });
  }

  /** The slot that has the key already, else one whose entry has ended. `until` claims it, in one exchange. */
  #slotFor(key: bigint, until: number): number | undefined {
    const now = seconds();
    for (let i = 0; i < WINDOW; i++) {
      const slot = slotOf(key, i);
      const old = Atomics.load(this.#until, slot);
      if (Atomics.load(this.#revoked, slot) !== key || old <= now) continue;
      if (until > old) Atomics.compareExchange(this.#until, slot, old, until);
      return slot;
    }
    for (let i = 0; i < WINDOW; i++) {
      const slot = slotOf(key, i);
      const old = Atomics.load(this.#until, slot);
      if (old <= now && Atomics.compareExchange(this.#until, slot, old, until) === old) return slot;
    }
    return undefined;
  }

  #claim(generation: string): "won" | "taken" | "done" {
    const { slot, tag } = leaseOf(generation);
    for (;;) {
      const word = Atomics.load(this.#leases, slot);
      const state = stateOf(word, tag);
      if (state !== "free") return state;
      const mine = leaseWord(tag, seconds() + LEASE, false);
      if (Atomics.compareExchange(this.#leases, slot, word, mine) === word) return "won";
    }
  }

  async #run(generation: string, run: () => Promise<Renewal>): Promise<Renewal> {
    const renewal = await run();
    const { slot, tag } = leaseOf(generation);
    // Posted before the lease ends, so that a thread that finds the lease ended already has the message in its queue.
    this.#channel?.postMessage({ generation, renewal });
    this.#learn(generation, renewal);
    const kept = renewal.state === "failed" ? 0 : DONE;
    Atomics.store(this.#leases, slot, leaseWord(tag, seconds() + kept, true));
    return renewal;
  }

  /** The result of another thread. */
  #wait(generation: string, state: "taken" | "done"): Promise<Renewal> {
    return new Promise((resolve) => {
      const end = (renewal: Renewal): void => {
        clearTimeout(timer);
        this.#waiting.delete(generation);
        resolve(renewal);
      };
      const lost = { state: "failed", why: "the thread that refreshed the session has ended", retryAt: 0 } as const;
      const timer = setTimeout(() => end(lost), state === "done" ? DELIVERY_MS : LEASE * 1000);
      this.#waiting.set(generation, end);
    });
  }

  #learn(generation: string, renewal: Renewal): void {
    this.#known.set(generation, renewal);
    this.#waiting.get(generation)?.(renewal);
  }
}

function weigh(renewal: Renewal): number {
  return renewal.state === "renewed" ? JSON.stringify(renewal.session).length : 100;
}

function slotOf(key: bigint, i: number): number {
  return (Number(key & 0xffffn) + i) % REVOCATIONS;
}

/** `generation` is random: its first bytes choose the slot, the next are the tag. */
function leaseOf(generation: string): { readonly slot: number; readonly tag: bigint } {
  const bytes = Buffer.from(generation, "base64url");
  return { slot: bytes.readUInt16LE(0), tag: BigInt(bytes.readInt32LE(2)) };
}

function leaseWord(tag: bigint, until: number, done: boolean): bigint {
  return (tag << 32n) | BigInt(Math.max(0, until - EPOCH) * 2 + (done ? 1 : 0));
}

function stateOf(word: bigint, tag: bigint): "free" | "taken" | "done" {
  if (word >> 32n !== tag || Number((word & 0xffff_ffffn) >> 1n) + EPOCH <= seconds()) return "free";
  return (word & 1n) === 1n ? "done" : "taken";
}
