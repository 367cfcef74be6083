/**
 * Active health checks (`health.active`): which endpoints are probed, and by which worker.
 *
 * Every worker knows the endpoints with a check; one of them, which the main thread elects, probes them for all, so an endpoint
 * gets as many probes from a gateway with one worker as from one with sixteen. A result that changes something goes to the
 * main thread and from there to the other workers, as evictions do. When the prober dies, another worker takes over with the
 * states that are known.
 */
import type { Logger } from "../../base/log.ts";
import type { ProbeResult } from "../../telemetry/probe-result.ts";
import type { Endpoint, HealthNotice } from "../endpoints/endpoint.ts";
import type { CheckedEndpoints, HealthCheck } from "../endpoints/health-check.ts";
import type { Pools } from "../pools/pools.ts";
import { type CheckDeps, EndpointCheck } from "./endpoint-check.ts";
import { probeOnce } from "./probe-once.ts";

interface CheckedEndpoint {
  readonly endpoint: Endpoint;
  readonly check: HealthCheck;
  /** undefined while this worker does not probe. */
  running: EndpointCheck | undefined;
}

/** The active health checks of one worker. */
export class HealthChecks implements CheckedEndpoints {
  readonly #entries = new Map<Endpoint, CheckedEndpoint>();
  readonly #deps: CheckDeps;
  readonly #log: Logger;
  readonly #publish: (notice: HealthNotice) => void;
  #probing = false;

  /** `pools` are for probes alone. `publish` passes on what this worker has found out. */
  constructor(pools: Pools, random: () => number, log: Logger, publish: (notice: HealthNotice) => void) {
    this.#log = log;
    this.#publish = publish;
    this.#deps = { pools, random, onChange: (endpoint, notice) => this.#changed(endpoint, notice) };
  }

  /** This worker probes from now on. */
  start(): void {
    if (this.#probing) return;
    this.#probing = true;
    for (const entry of this.#entries.values()) this.#run(entry);
  }

  add(endpoint: Endpoint, check: HealthCheck): void {
    const entry: CheckedEndpoint = { endpoint, check, running: undefined };
    this.#entries.set(endpoint, entry);
    if (this.#probing) this.#run(entry);
  }

  delete(endpoint: Endpoint): void {
    const running = this.#entries.get(endpoint)?.running;
    this.#entries.delete(endpoint);
    if (running === undefined) return;
    running.close();
    this.#publish({ key: endpoint.key, healthy: undefined, reason: "" });
  }

  /** Probes endpoints once, all at the same time: by their checks, or with a connection. Changes nothing of their state. */
  probe(endpoints: readonly Endpoint[]): Promise<ProbeResult[]> {
    return Promise.all(
      endpoints.map((endpoint) => probeOnce(endpoint, this.#deps.pools, this.#entries.get(endpoint)?.check)),
    );
  }

  #run(entry: CheckedEndpoint): void {
    entry.running = new EndpointCheck(entry.endpoint, entry.check, this.#deps);
  }

  #changed(endpoint: Endpoint, notice: HealthNotice): void {
    const before = endpoint.check?.healthy;
    const fields = { endpoint: endpoint.pool.name, ...(notice.healthy === false && { reason: notice.reason }) };
    if (before === notice.healthy) this.#log.debug("endpoint is still unhealthy", fields);
    else if (notice.healthy === false) this.#log.warn("endpoint is unhealthy", fields);
    // The first success of a new endpoint is not worth a line at `info`.
    else this.#log[before === undefined ? "debug" : "info"]("endpoint is healthy", fields);
    endpoint.setHealth(notice);
    this.#publish(notice);
  }
}
