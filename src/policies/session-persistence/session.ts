/** Sessions as clients carry them: sealed texts that name an endpoint. */
import type { PersistentSession } from "../contract/types.ts";
import { open, seal } from "../shared/sealed.ts";
import type { SessionPersistence } from "./schema.ts";

/** What is sealed. */
interface Content {
  readonly n: string;
  readonly s: number;
}

/** Why a text is not a usable session. */
type Unusable = "expired" | "invalid";

/** Reads and makes the sessions of one route. `purpose` names the route: sessions of others do not open. */
export class Sessions {
  readonly #key: Uint8Array;
  readonly #purpose: string;
  /** Seconds; Infinity = no limit. */
  readonly #absolute: number;
  readonly #idle: number;

  constructor(key: Uint8Array, purpose: string, { absoluteTimeout, idleTimeout }: SessionPersistence) {
    this.#key = key;
    this.#purpose = purpose;
    this.#absolute = secondsOf(absoluteTimeout);
    this.#idle = secondsOf(idleTimeout);
  }

  /** Every response renews the session. */
  get renews(): boolean {
    return Number.isFinite(this.#idle);
  }

  /** `now` in Unix seconds. */
  read(text: string, now: number): PersistentSession | Unusable {
    const opened = open(this.#key, this.#purpose, text, now);
    if (opened.state !== "valid") return opened.state;
    const { n: endpoint, s: since } = opened.value as Content;
    // The limits may have become shorter since the session was sealed.
    return since + this.#absolute > now ? { endpoint, since } : "expired";
  }

  issue({ endpoint, since }: PersistentSession, now: number): string {
    const expires = Math.min(since + this.#absolute, now + this.#idle, Number.MAX_SAFE_INTEGER);
    return seal(this.#key, this.#purpose, { n: endpoint, s: since } satisfies Content, expires);
  }

  /** Seconds until `absoluteTimeout`. */
  left({ since }: PersistentSession, now: number): number {
    return since + this.#absolute - now;
  }
}

function secondsOf(milliseconds: number | undefined): number {
  return milliseconds === undefined ? Number.POSITIVE_INFINITY : Math.ceil(milliseconds / 1000);
}
