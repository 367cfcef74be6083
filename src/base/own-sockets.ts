import { statSync } from "node:fs";
import { isUnspecified } from "./host-addresses.ts";
import { ipBytes } from "./ip-address.ts";

/** The kind of listener on a port of this process: a bind, which serves clients, or one of the gateway's own servers. */
type OwnListener = "bind" | "server";

export type IpProtocol = "tcp" | "udp";

/** Bytes of one bitmap of ports. */
const MAP = 65_536 / 8;
const MAPS = ["tcp bind", "tcp server", "udp bind", "udp server"] as const;
/** Unix sockets on which a thread can listen at the same time; each takes 16 bytes, for device and inode. */
const UNIX_SLOTS = 64;
/**
 * Ports at one address that a thread can record; each takes 24 bytes: what it is, then the address. Further ones count as ports at all
 * addresses, so the gateway would refuse a few connections too many.
 */
const ADDRESS_SLOTS = 64;
/** After the slots: how many of those of addresses may be in use. */
const THREAD = MAPS.length * MAP + UNIX_SLOTS * 16 + ADDRESS_SLOTS * 24 + 8;

/**
 * Where this process listens, in memory that all threads share: every `listen` is recorded here, and removed after the socket has
 * closed, so a draining bind counts until it is closed. New ports of binds are recorded before any worker listens (worker/ports.ts).
 * Egress consults it before each connection.
 *
 * Each thread writes its own region. A thread that replaces a dead one clears the region of its predecessor, whose sockets have closed.
 */
export class OwnSockets {
  readonly memory: SharedArrayBuffer;
  /** Whether connections of this process to its own servers are closed. Tests whose clients run in the same process turn it off. */
  guarded = true;
  /** Names the parts of the configuration that lead to a port, for the log. Set by `Gateway`, which knows the configuration. */
  callersOf: (port: number) => readonly string[] = () => [];
  readonly #ports: Uint8Array;
  readonly #words: BigInt64Array;
  readonly #thread: number;
  readonly #threads: number;
  /** Sockets of this thread by map and port: several may have the same port, such as `127.0.0.1` and `::1`. */
  readonly #counts = new Map<string, number>();

  /** `threads`: the number of threads that may listen. */
  static memoryFor(threads: number): SharedArrayBuffer {
    return new SharedArrayBuffer(threads * THREAD);
  }

  /** `thread`: the index of the region that the caller writes; 0 is that of the main thread. */
  constructor(memory = OwnSockets.memoryFor(1), thread = 0) {
    this.memory = memory;
    this.#thread = thread;
    this.#threads = memory.byteLength / THREAD;
    this.#ports = new Uint8Array(memory);
    this.#words = new BigInt64Array(memory);
    this.#ports.fill(0, thread * THREAD, (thread + 1) * THREAD);
  }

  /** Records a port until the returned function is called. `host`: the only address at which it is open; all by default. */
  addPort(protocol: IpProtocol, listener: OwnListener, port: number, host = "::"): () => void {
    const map = mapOf(protocol, listener);
    const address = ipBytes(host);
    if (address !== undefined && !isUnspecified(address)) {
      const forget = this.#addAddress(map, port, address);
      if (forget !== undefined) return forget;
    }
    const name = `${map} ${port}`;
    const [at, bit] = this.#place(this.#thread, map, port);
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
    Atomics.or(this.#ports, at, bit);
    let open = true;
    return () => {
      if (!open) return;
      open = false;
      const left = (this.#counts.get(name) ?? 1) - 1;
      this.#counts.set(name, left);
      if (left === 0) Atomics.and(this.#ports, at, ~bit & 0xff);
    };
  }

  /** Records the Unix socket at `path`, which must exist, until the returned function is called. Throws if there is no room. */
  addUnix(path: string): () => void {
    const { dev, ino } = statSync(path, { bigint: true });
    for (let slot = 0; slot < UNIX_SLOTS; slot++) {
      const at = this.#unixAt(this.#thread, slot);
      if (Atomics.load(this.#words, at + 1) !== 0n) continue;
      Atomics.store(this.#words, at, dev);
      Atomics.store(this.#words, at + 1, ino);
      return () => void Atomics.store(this.#words, at + 1, 0n);
    }
    throw new Error(`more than ${UNIX_SLOTS} Unix sockets`);
  }

  /** What listens on a port at an address of this host, by default at any; a server takes precedence. */
  find(protocol: IpProtocol, port: number, host = "::"): OwnListener | undefined {
    for (const listener of ["server", "bind"] as const) {
      const map = mapOf(protocol, listener);
      if (this.#has(map, port) || this.#hasAddress(map, port, host)) return listener;
    }
    return undefined;
  }

  /** The same by its path. */
  hasUnixPath(path: string): boolean {
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
    return stats !== undefined && this.hasUnix(stats);
  }

  /** Whether this process listens on the Unix socket with this device and inode, whatever its path. */
  hasUnix({ dev, ino }: { readonly dev: bigint; readonly ino: bigint }): boolean {
    for (let thread = 0; thread < this.#threads; thread++)
      for (let slot = 0; slot < UNIX_SLOTS; slot++) {
        const at = this.#unixAt(thread, slot);
        if (Atomics.load(this.#words, at + 1) === ino && Atomics.load(this.#words, at) === dev) return true;
      }
    return false;
  }

  /** Undefined if there is no room. */
  #addAddress(map: number, port: number, address: Uint8Array): (() => void) | undefined {
    for (let slot = 0; slot < ADDRESS_SLOTS; slot++) {
      const at = this.#addressAt(this.#thread, slot);
      if (Atomics.load(this.#words, at) !== 0n) continue;
      const [high, low] = wordsOf(address);
      Atomics.store(this.#words, at + 1, high);
      Atomics.store(this.#words, at + 2, low);
      Atomics.store(this.#words, at, whatOf(map, port));
      const used = this.#addressAt(this.#thread, ADDRESS_SLOTS);
      if (Atomics.load(this.#words, used) <= slot) Atomics.store(this.#words, used, BigInt(slot + 1));
      return () => void Atomics.store(this.#words, at, 0n);
    }
    return undefined;
  }

  /** Text that is not an address may mean any, and so does the unspecified address, for which systems connect to themselves. */
  #hasAddress(map: number, port: number, host: string): boolean {
    let wanted: readonly [bigint, bigint] | undefined;
    let any = false;
    for (let thread = 0; thread < this.#threads; thread++) {
      const used = Number(Atomics.load(this.#words, this.#addressAt(thread, ADDRESS_SLOTS)));
      for (let slot = 0; slot < used; slot++) {
        const at = this.#addressAt(thread, slot);
        if (Atomics.load(this.#words, at) !== whatOf(map, port)) continue;
        if (wanted === undefined && !any) {
          const bytes = ipBytes(host);
          if (bytes === undefined || isUnspecified(bytes)) any = true;
          else wanted = wordsOf(bytes);
        }
        const [high, low] = wanted ?? [];
        if (any || (Atomics.load(this.#words, at + 1) === high && Atomics.load(this.#words, at + 2) === low))
          return true;
      }
    }
    return false;
  }

  #addressAt(thread: number, slot: number): number {
    return (thread * THREAD + MAPS.length * MAP + UNIX_SLOTS * 16) / 8 + 3 * slot;
  }

  #has(map: number, port: number): boolean {
    for (let thread = 0; thread < this.#threads; thread++) {
      const [at, bit] = this.#place(thread, map, port);
      if ((Atomics.load(this.#ports, at) & bit) !== 0) return true;
    }
    return false;
  }

  #place(thread: number, map: number, port: number): readonly [at: number, bit: number] {
    return [thread * THREAD + map * MAP + (port >> 3), 1 << (port & 7)];
  }

  #unixAt(thread: number, slot: number): number {
    return (thread * THREAD + MAPS.length * MAP) / 8 + 2 * slot;
  }
}

/** Never 0. */
function whatOf(map: number, port: number): bigint {
  return BigInt((map + 1) * 65_536 + port);
}

/** An address in two numbers; one of IPv4 is in the second. */
function wordsOf(bytes: Uint8Array): readonly [high: bigint, low: bigint] {
  const words = new BigInt64Array(2);
  new Uint8Array(words.buffer).set(bytes, 16 - bytes.length);
  return [words[0] ?? 0n, words[1] ?? 0n];
}

function mapOf(protocol: IpProtocol, listener: OwnListener): number {
  return MAPS.indexOf(`${protocol} ${listener}`);
}
