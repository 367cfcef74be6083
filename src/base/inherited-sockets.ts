import { closeSync } from "node:fs";

/** A listening socket of another process: its address is `127.0.0.1:8080`, `[::]:8080` or `unix:/path`. */
export interface InheritedSocket {
  readonly fd: number;
  readonly address: string;
}

/**
 * The listening sockets that this process has from its start: from a gateway that it takes over from, or from systemd. Connections that
 * wait on them are not lost when the other process closes its copies, since the system keeps a socket until its last copy is closed.
 */
export class InheritedSockets {
  /** Whether a gateway serves with these sockets until this process is ready. */
  readonly takesOver: boolean;
  readonly #left: InheritedSocket[];
  readonly #addresses: ReadonlySet<string>;
  readonly #ipv6: boolean;

  /** `ipv6`: whether the system has it. */
  constructor(sockets: readonly InheritedSocket[] = [], { takesOver = false, ipv6 = true } = {}) {
    this.takesOver = takesOver;
    this.#ipv6 = ipv6;
    this.#left = sockets.map(({ fd, address }) => ({ fd, address: this.#opened(address) }));
    this.#addresses = new Set(this.#left.map(({ address }) => address));
  }

  /** Whether the sockets are those of a service manager, which keeps them. */
  get ofServiceManager(): boolean {
    return !this.takesOver && this.#addresses.size > 0;
  }

  /** Whether there is, or was at the start, a socket at this address. */
  has(address: string): boolean {
    return this.#addresses.has(this.#opened(address));
  }

  /** A socket at this address that has not been taken yet. */
  take(address: string): number | undefined {
    const opened = this.#opened(address);
    const at = this.#left.findIndex((each) => each.address === opened);
    return at < 0 ? undefined : this.#left.splice(at, 1)[0]?.fd;
  }

  /**
   * The sockets at these addresses, divided among `count` threads. Each of them serves several if there are more sockets than threads,
   * because connections wait on each socket. If there are fewer, some threads have an empty list.
   */
  divide(addresses: readonly string[], count: number): Readonly<Record<string, readonly number[]>>[] {
    const shares = Array.from({ length: count }, (): Record<string, number[]> => ({}));
    for (const address of new Set(addresses)) {
      if (this.has(address)) for (const share of shares) share[address] = [];
      for (let i = 0, fd = this.take(address); fd !== undefined; i++, fd = this.take(address)) {
        const share = shares[i % count];
        if (share !== undefined) share[address]?.push(fd);
      }
    }
    return shares;
  }

  /** Where a socket for `address` listens: any address of a system without IPv6 is `0.0.0.0`, for systemd as for the gateway. */
  #opened(address: string): string {
    return this.#ipv6 ? address : address.replace(/^\[::\](?=:)/, "0.0.0.0");
  }

  /** Closes the sockets that have not been taken: clients would wait on them forever. */
  closeRest(): void {
    for (const { fd } of this.#left.splice(0)) closeSync(fd);
  }
}
