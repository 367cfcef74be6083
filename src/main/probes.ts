import { AdminUnavailable } from "../admin/plane/plane.ts";
import { messageOf } from "../base/errors.ts";
import type { ProbeResult } from "../telemetry/probe-result.ts";
import type { Supervisor } from "../worker/supervisor.ts";

/** Endpoints that are probed at a time. */
const MOST = 16;
/** Milliseconds between the end of one round of probes and the next: probes must not become a load on backends. */
const PAUSE_MS = 1000;

/** Probes that somebody asks for: of some endpoints at a time, and not too often. */
export class Probes {
  readonly #supervisor: Pick<Supervisor, "probe">;
  /** `performance.now()` ms; infinite while endpoints are probed. */
  #nextAt = 0;

  constructor(supervisor: Pick<Supervisor, "probe">) {
    this.#supervisor = supervisor;
  }

  /** Probes the first of these endpoints. @throws AdminUnavailable if it is too early, or no worker can do it */
  async of(keys: readonly string[]): Promise<readonly ProbeResult[]> {
    if (keys.length === 0) return [];
    if (performance.now() < this.#nextAt)
      throw new AdminUnavailable("endpoints are probed, or were within the last second; try again");
    this.#nextAt = Number.POSITIVE_INFINITY;
    try {
      return await this.#supervisor.probe(keys.slice(0, MOST));
    } catch (error) {
      throw new AdminUnavailable(`the endpoints were not probed: ${messageOf(error)}`);
    } finally {
      this.#nextAt = performance.now() + PAUSE_MS;
    }
  }
}
