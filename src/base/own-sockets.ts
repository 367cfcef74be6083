import { statSync } from "node:fs";

/** The kind of listener on a port of this process: a bind, which serves clients, or one of the gateway's own servers. */
type OwnListener = "bind" | "server";

export type IpProtocol = "tcp" | "udp";

/** Bytes of one bitmap of ports. */
const MAP = 65_536 / 8;
const MAPS = ["tcp bind", "tcp server", "udp bind", "udp server"] as const;
/** Unix sockets on which a thread can listen at the same time; each takes 16 bytes, for device and inode. */
const UNIX_SLOTS = 8;
const THREAD = MAPS.length * MAP + UNIX_SLOTS * 16;

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
  readonly #unix: BigInt64Array;
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
    this.#unix = new BigInt64Array(memory);
    this.#ports.fill(0, thread * THREAD, (thread + 1) * THREAD);
  }

  /** Records a port until the returned function is called. */
  addPort(protocol: IpProtocol, listener: OwnListener, port: number): () => void {
    const map = mapOf(protocol, listener);
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
      if (Atomics.load(this.#unix, at + 1) !== 0n) continue;
      Atomics.store(this.#unix, at, dev);
      Atomics.store(this.#unix, at + 1, ino);
      return () => void Atomics.store(this.#unix, at + 1, 0n);
    }
    throw new Error(`more than ${UNIX_SLOTS} Unix sockets`);
  }

  /** What listens on a port, on any address; a server takes precedence. */
  find(protocol: IpProtocol, port: number): OwnListener | undefined {
    if (this.#has(mapOf(protocol, "server"), port)) return "server";
    return this.#has(mapOf(protocol, "bind"), port) ? "bind" : undefined;
  }

  /** Whether this process listens on the Unix socket with this device and inode, whatever its path. */
  hasUnix({ dev, ino }: { readonly dev: bigint; readonly ino: bigint }): boolean {
    for (let thread = 0; thread < this.#threads; thread++)
      for (let slot = 0; slot < UNIX_SLOTS; slot++) {
        const at = this.#unixAt(thread, slot);
        if (Atomics.load(this.#unix, at + 1) === ino && Atomics.load(this.#unix, at) === dev) return true;
      }
    return false;
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

function mapOf(protocol: IpProtocol, listener: OwnListener): number {
  return MAPS.indexOf(`${protocol} ${listener}`);
}
