/** Milliseconds that the steps of making a connection took; a step that was not needed or not reached is absent. */
export interface ConnectTimes {
  /** From the name to its addresses; about 0 when they were known. */
  readonly dns?: number;
  /** To the server, or to the proxy on the way; addresses that did not answer are part of it. */
  readonly connect?: number;
  /** The TLS handshake with the server. */
  readonly tls?: number;
}

/** Notes when each step of making one connection ends, so that a trace can say where the time went. */
export class ConnectClock {
  /** `performance.now()` ms; 0 = not yet. */
  readonly #startedAt = performance.now();
  #locatedAt = 0;
  #reachedAt = 0;
  #endedAt = 0;
  #named = false;

  /** The addresses are there. `named`: a name had to be looked up. */
  located(named: boolean): void {
    this.#locatedAt = performance.now();
    this.#named = named;
  }

  /** Bytes reach the server, and the handshake begins. */
  reached(): void {
    this.#reachedAt = performance.now();
  }

  /** The connection can be used, or the attempt has failed. */
  ended(): void {
    this.#endedAt = performance.now();
  }

  get times(): ConnectTimes {
    const [started, located, reached, end] = [this.#startedAt, this.#locatedAt, this.#reachedAt, this.#endedAt];
    return {
      ...((this.#named || located === 0) && { dns: (located || end) - started }),
      ...(located !== 0 && { connect: (reached || end) - located }),
      ...(reached !== 0 && { tls: end - reached }),
    };
  }
}
