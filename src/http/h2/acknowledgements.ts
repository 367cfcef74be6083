/** Milliseconds that a peer has to acknowledge SETTINGS or a PING. */
const ACK_TIMEOUT_MS = 10_000;

/** What the peer of one connection has to acknowledge in time: our SETTINGS (RFC 9113 6.5.3) and our PINGs (6.7), in order. */
export class Acknowledgements {
  readonly #pings: { readonly onAck: () => void; readonly due: number }[] = [];
  /** `performance.now()` ms, 0 = our SETTINGS have been acknowledged. */
  #settingsDue = performance.now() + ACK_TIMEOUT_MS;

  settingsCame(): void {
    this.#settingsDue = 0;
  }

  /** Returns the payload of the PING; `onAck` follows. `timeoutMs` 0: no limit. */
  addPing(onAck: () => void, timeoutMs = ACK_TIMEOUT_MS): number {
    const due = timeoutMs === 0 ? Number.POSITIVE_INFINITY : performance.now() + timeoutMs;
    return this.#pings.push({ onAck, due });
  }

  /** An acknowledgement of a PING that was never sent is ignored. */
  pingCame(): void {
    this.#pings.shift()?.onAck();
  }

  settingsOverdue(now: number): boolean {
    return this.#settingsDue > 0 && now > this.#settingsDue;
  }

  pingOverdue(now: number): boolean {
    return this.#pings.some(({ due }) => now > due);
  }
}
