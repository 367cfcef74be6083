import { createHash, hkdfSync, randomFillSync } from "node:crypto";
import { storeInOrder } from "../base/store-in-order.ts";
import type { TicketKey, TicketKeyring } from "../net/node-internals-tls.ts";

/** Milliseconds for which a secret encrypts new tickets; for the same time after that, it only decrypts. */
export const TICKET_PERIOD_MS = 2 * 3600 * 1000;
/** Seconds for which clients may resume a session, so that it does not outlive the secret of its ticket. */
export const SESSION_LIFETIME_S = TICKET_PERIOD_MS / 1000;

const SECRET_BYTES = 32;
/** The current secret, the one before, and the place of the next. */
const PLACES = 3;
const HEADER_BYTES = 64;
/** Cells of the header: the number of rotations, and one that only orders accesses. */
const [ROTATIONS, FENCE] = [0, 1];
const NAME_BYTES = 16;
const AES_BYTES = 16;
const HMAC_BYTES = 32;

/**
 * The secrets from which the keys of session tickets are derived, in memory that all workers share: a client can resume its session
 * at any worker. Secrets are random and never stored; a restart of the process forgets them.
 */
export class TicketSecrets {
  readonly memory: SharedArrayBuffer;
  /** The header. The current secret is at the number of rotations modulo `PLACES`. */
  readonly #header: Int32Array;
  readonly #secrets: Uint8Array;

  /** `memory`: that of another thread; absent = new secrets. */
  constructor(memory?: SharedArrayBuffer) {
    this.memory = memory ?? new SharedArrayBuffer(HEADER_BYTES + PLACES * SECRET_BYTES);
    this.#header = new Int32Array(this.memory, 0, HEADER_BYTES / Int32Array.BYTES_PER_ELEMENT);
    this.#secrets = new Uint8Array(this.memory, HEADER_BYTES);
    if (memory === undefined) this.#secrets.set(randomBytes(PLACES * SECRET_BYTES));
  }

  /**
   * From now on, tickets are encrypted with a new secret. The current one still decrypts, the one before does not: an attacker who
   * reads the memory of the process learns the sessions of two periods, not of its whole life. Called by the main thread only.
   */
  rotate(): void {
    const next = this.rotations + 1;
    this.#secrets.set(randomBytes(SECRET_BYTES), (next % PLACES) * SECRET_BYTES);
    // Threads must see the new number before the place of the next rotation changes, which holds the secret before the former one.
    storeInOrder(this.#header, ROTATIONS, next);
    this.#secrets.fill(0, ((next + 1) % PLACES) * SECRET_BYTES, ((next + 1) % PLACES) * SECRET_BYTES + SECRET_BYTES);
  }

  get rotations(): number {
    return Atomics.load(this.#header, ROTATIONS);
  }

  /** Copies of the current secret and of the one before, with the number of rotations by then. */
  read(): { readonly rotations: number; readonly secrets: readonly Uint8Array[] } {
    while (true) {
      const { rotations } = this;
      const secrets = [rotations, rotations - 1].map((each) => {
        const from = ((each + PLACES) % PLACES) * SECRET_BYTES;
        return Uint8Array.from(this.#secrets.subarray(from, from + SECRET_BYTES));
      });
      // A rotation meanwhile may have overwritten the one before with zeros, from which everybody could derive keys.
      storeInOrder(this.#header, FENCE, 0);
      if (this.rotations === rotations) return { rotations, secrets };
    }
  }
}

/**
 * The keys of one listener's tickets, derived from its name and all of its TLS settings. So neither another listener nor the same one
 * with other settings accepts its tickets, which could otherwise bypass the check against another client CA.
 */
export class ListenerTickets implements TicketKeyring {
  /**
   * Sessions with a client's certificate end with their first ticket, because a resumption does not check the certificate again.
   */
  readonly renew: boolean;
  /** Also distinguishes listeners in sessions (at most 32 characters). */
  readonly id: string;
  readonly #secrets: TicketSecrets;
  readonly #listener: Buffer;
  #rotations = Number.NaN;
  #keys: readonly TicketKey[] = [];

  /** `listener`: whatever must be the same for a ticket to be accepted. */
  constructor(secrets: TicketSecrets, listener: string, renew: boolean) {
    this.renew = renew;
    this.#secrets = secrets;
    this.#listener = createHash("sha256").update(listener).digest();
    this.id = this.#listener.toString("hex", 0, 16);
  }

  get current(): TicketKey {
    const [current] = this.#known();
    if (current === undefined) throw new Error("a listener has ticket keys at all times");
    return current;
  }

  find(name: Buffer): TicketKey | undefined {
    return this.#known().find((key) => key.name.equals(name));
  }

  /** The current key, then the one before. */
  #known(): readonly TicketKey[] {
    if (this.#secrets.rotations !== this.#rotations) {
      const { rotations, secrets } = this.#secrets.read();
      this.#rotations = rotations;
      this.#keys = secrets.map((secret) => derive(secret, this.#listener));
    }
    return this.#keys;
  }
}

/** HKDF (RFC 5869): a key reveals nothing about the secret or the keys of other listeners. */
function derive(secret: Uint8Array, listener: Buffer): TicketKey {
  const length = NAME_BYTES + AES_BYTES + HMAC_BYTES;
  const bytes = Buffer.from(hkdfSync("sha256", secret, "tracegate session tickets", listener, length));
  return {
    name: bytes.subarray(0, NAME_BYTES),
    aes: bytes.subarray(NAME_BYTES, NAME_BYTES + AES_BYTES),
    hmac: bytes.subarray(NAME_BYTES + AES_BYTES),
  };
}

function randomBytes(count: number): Uint8Array {
  return randomFillSync(new Uint8Array(count));
}
