/** Minimum bytes per second of a buffered body while the budget is used up; slower bodies give way. */
const RATE = 16 * 1024;
/** Milliseconds by which a sender may fall behind that rate before it counts as slow. */
const PATIENCE_MS = 2000;
/** Milliseconds until the next search for slow senders after one that found none. */
const LOOK_AGAIN_MS = 100;

/** The client that the bytes of a share belong to. */
interface BufferClient {
  /** The client's address; several connections can share it. */
  readonly address: string;
  /** The connection, which may carry several exchanges. */
  readonly connection: object;
}

/** A body that is still arriving from a client. */
export interface ArrivingBody {
  /** Releases its bytes: the body is dropped, and its request is rejected unless it can continue without them. `slow`: see `BufferBudget`. */
  giveWay(slow: boolean): void;
}

/**
 * Body bytes that a worker holds for policies, over all its requests and responses. When it is used up, bodies that are still arriving give
 * way, so that a client which begins many bodies and then stops does not block all others:
 *
 * 1. the one whose sender has been too slow for longest, from any client;
 * 2. otherwise, one of the client address that holds most, or of its connection that holds most, if that is more than the client that needs
 *    room would hold.
 */
export class BufferBudget {
  used = 0;
  readonly now: () => number;
  readonly #shares = new Set<BufferShare>();
  /** Time in milliseconds before which no sender is slow. */
  #lookAt = 0;

  /** `now`: milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.now = now;
  }

  /** A share starts or stops holding bytes. */
  enter(share: BufferShare): void {
    this.#shares.add(share);
  }

  leave(share: BufferShare): void {
    this.#shares.delete(share);
  }

  /** Makes room for `bytes` of `share` below `limit`. False if no body has to give way. */
  makeRoom(share: BufferShare, bytes: number, limit: number): boolean {
    while (this.used + bytes > limit) {
      const slow = this.#slowest(share);
      const victim = slow ?? this.#ofHeaviest(share, bytes);
      if (victim === undefined) return false;
      const before = this.used;
      victim.giveWay(slow !== undefined);
      if (this.used === before) return false;
    }
    return true;
  }

  #slowest(except: BufferShare): BufferShare | undefined {
    const now = this.now();
    if (now < this.#lookAt) return undefined;
    const found = longestBehind(this.#shares, (share) => share !== except && share.keepsUpUntil < now);
    if (found === undefined) this.#lookAt = now + LOOK_AGAIN_MS;
    return found;
  }

  #ofHeaviest(share: BufferShare, bytes: number): BufferShare | undefined {
    const { address, connection } = share.client;
    const addresses = new Map<string, number>();
    for (const each of this.#shares) add(addresses, each.client.address, each.taken);
    const [heaviest, most] = largest(addresses);
    if (heaviest !== address)
      return most > (addresses.get(address) ?? 0) + bytes
        ? longestBehind(this.#shares, (each) => each.client.address === heaviest)
        : undefined;
    const connections = new Map<object, number>();
    for (const each of this.#shares)
      if (each.client.address === address) add(connections, each.client.connection, each.taken);
    const [busiest, held] = largest(connections);
    if (busiest === connection || held <= (connections.get(connection) ?? 0) + bytes) return undefined;
    return longestBehind(this.#shares, (each) => each.client.connection === busiest);
  }
}

function add<K>(sums: Map<K, number>, key: K, bytes: number): void {
  sums.set(key, (sums.get(key) ?? 0) + bytes);
}

function largest<K>(sums: ReadonlyMap<K, number>): readonly [K | undefined, number] {
  let found: readonly [K | undefined, number] = [undefined, 0];
  for (const entry of sums) if (entry[1] > found[1]) found = entry;
  return found;
}

/** The share of an arriving body that fell behind first. */
function longestBehind(
  shares: Iterable<BufferShare>,
  wanted: (share: BufferShare) => boolean,
): BufferShare | undefined {
  let found: BufferShare | undefined;
  for (const share of shares)
    if (share.arriving && wanted(share) && (found === undefined || share.keepsUpUntil < found.keepsUpUntil))
      found = share;
  return found;
}

/**
 * What one exchange uses of the budget of its worker. Everything is returned when the exchange is over, however it ended; bytes that
 * are still held then are freed with the exchange.
 */
export class BufferShare {
  readonly client: BufferClient;
  readonly #budget: BufferBudget;
  readonly #limit: number;
  #taken = 0;
  #closed = false;
  #body: ArrivingBody | undefined;
  /** The time in milliseconds up to which the bytes that have arrived suffice at `RATE`. */
  keepsUpUntil = 0;

  /** `limit`: bytes for the worker as a whole. */
  constructor(budget: BufferBudget, limit: number, client: BufferClient) {
    this.#budget = budget;
    this.#limit = limit;
    this.client = client;
  }

  /** Bytes. */
  get taken(): number {
    return this.#taken;
  }

  /** The client is sending a body, and the gateway is waiting for it. */
  get arriving(): boolean {
    return this.#body !== undefined;
  }

  /** Takes bytes that are required: others may have to give way. False = no room; nothing was taken. */
  take(bytes: number): boolean {
    return this.tryTake(bytes) || (this.#budget.makeRoom(this, bytes, this.#limit) && this.tryTake(bytes));
  }

  /** Takes optional bytes. False = no room; nothing was taken. */
  tryTake(bytes: number): boolean {
    if (this.#closed) return true;
    if (this.#budget.used + bytes > this.#limit) return false;
    if (this.#taken === 0) this.#budget.enter(this);
    this.#budget.used += bytes;
    this.#taken += bytes;
    return true;
  }

  give(bytes: number): void {
    const given = Math.min(bytes, this.#taken);
    this.#taken -= given;
    this.#budget.used -= given;
    if (this.#taken === 0) this.#budget.leave(this);
  }

  /** Bytes of a body have arrived, and more must follow. */
  arrived(body: ArrivingBody, bytes: number): void {
    const now = this.#budget.now();
    const since = this.#body === undefined ? now + PATIENCE_MS : Math.max(this.keepsUpUntil, now - PATIENCE_MS);
    this.#body = body;
    this.keepsUpUntil = Math.min(since + (bytes * 1000) / RATE, now + PATIENCE_MS);
  }

  /** The client does not have to send anything for now. */
  stopArriving(): void {
    this.#body = undefined;
  }

  giveWay(slow: boolean): void {
    this.#body?.giveWay(slow);
    this.#body = undefined;
  }

  /** The exchange is over. */
  close(): void {
    this.#body = undefined;
    this.give(this.#taken);
    this.#closed = true;
  }
}
