/** Milliseconds that a peer has to acknowledge SETTINGS or a PING. */
const ACK_TIMEOUT_MS = 10_000;

/** What the peer of one connection has to acknowledge in time: our SETTINGS (RFC 9113 6.5.3) and our PINGs (6.7), in order. */
export class Acknowledgements {
  readonly #pings: (() => void)[] = [];
  /** `performance.now()` ms, 0 = nothing is awaited. */
  #settingsDue = performance.now() + ACK_TIMEOUT_MS;
  #pingDue = 0;

  settingsCame(): void {
    this.#settingsDue = 0;
  }

  /** Returns the payload of the PING; `onAck` follows. */
  addPing(onAck: () => void): number {
    this.#pings.push(onAck);
    this.#pingDue ||= performance.now() + ACK_TIMEOUT_MS;
    return this.#pings.length;
  }

  /** One that was never sent is ignored. */
  pingCame(): void {
    const onAck = this.#pings.shift();
    this.#pingDue = this.#pings.length > 0 ? performance.now() + ACK_TIMEOUT_MS : 0;
    onAck?.();
  }

  settingsOverdue(now: number): boolean {
    return this.#settingsDue > 0 && now > this.#settingsDue;
  }

  pingOverdue(now: number): boolean {
    return this.#pingDue > 0 && now > this.#pingDue;
  }
}
