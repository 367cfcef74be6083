/** Milliseconds that a peer has to acknowledge SETTINGS or a PING. */
const ACK_TIMEOUT_MS = 10_000;

/** What the peer of one connection has to acknowledge in time: our SETTINGS (RFC 9113 6.5.3) and our PINGs (6.7), in order. */
export class Acknowledgements {
  readonly #pings: { readonly onAck: () => void; readonly due: number }[] = [];
  /** Our SETTINGS frames that have not been acknowledged. */
  #settings = 1;
  /** When the last one is due, `performance.now()` ms. */
  #settingsDue = performance.now() + ACK_TIMEOUT_MS;

  /** Further SETTINGS were sent. */
  settingsSent(): void {
    this.#settings++;
    this.#settingsDue = performance.now() + ACK_TIMEOUT_MS;
  }

  /** Returns whether it was awaited. */
  settingsCame(): boolean {
    if (this.#settings === 0) return false;
    this.#settings--;
    return true;
  }

  /** Returns the payload of the PING; `onAck` follows. `timeoutMs` 0: no limit. */
  addPing(onAck: () => void, timeoutMs = ACK_TIMEOUT_MS): number {
    const due = timeoutMs === 0 ? Number.POSITIVE_INFINITY : performance.now() + timeoutMs;
    return this.#pings.push({ onAck, due });
  }

  /** Returns whether it was awaited. */
  pingCame(): boolean {
    const ping = this.#pings.shift();
    ping?.onAck();
    return ping !== undefined;
  }

  settingsOverdue(now: number): boolean {
    return this.#settings > 0 && now > this.#settingsDue;
  }

  pingOverdue(now: number): boolean {
    return this.#pings.some(({ due }) => now > due);
  }
}
