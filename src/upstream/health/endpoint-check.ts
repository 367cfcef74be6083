import type { Endpoint, HealthNotice } from "../endpoints/endpoint.ts";
import type { HealthCheck } from "../endpoints/health-check.ts";
import type { Pools } from "../pools/pools.ts";
import { Probe } from "./probe.ts";

/** The first probe of an endpoint is sent within this many milliseconds: a reload with many endpoints must not probe all at once. */
const FIRST_WITHIN_MS = 1000;
/** Share by which intervals vary, in both directions, so that probes do not synchronize. */
const JITTER = 0.1;

/** The dependencies of an endpoint check. */
export interface CheckDeps {
  /** Pools for probes; requests have others. */
  readonly pools: Pools;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** The endpoint has become healthy or unhealthy, or fails for another reason. */
  readonly onChange: (endpoint: Endpoint, notice: HealthNotice) => void;
}

/** Probes one endpoint again and again, one probe at a time, and decides whether it is healthy. */
export class EndpointCheck {
  readonly #endpoint: Endpoint;
  readonly #check: HealthCheck;
  readonly #deps: CheckDeps;
  readonly #probe: Probe;
  /** Probes in a row whose result differs from the state of the endpoint. */
  #contrary = 0;
  #timer: NodeJS.Timeout;
  #cancel: () => void = () => {};
  #closed = false;

  /** Continues from the endpoint's current state: the thread that probed it before may have died. */
  constructor(endpoint: Endpoint, check: HealthCheck, deps: CheckDeps) {
    this.#endpoint = endpoint;
    this.#check = check;
    this.#deps = deps;
    this.#probe = new Probe(endpoint.pool.target, check, deps.pools);
    const first = Math.min(FIRST_WITHIN_MS, check.settings.interval) * deps.random();
    this.#timer = setTimeout(() => this.#run(), first);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#cancel();
    this.#probe.close();
  }

  #run(): void {
    const startedAt = performance.now();
    const cancels: (() => void)[] = [];
    this.#cancel = () => {
      for (const cancel of cancels) cancel();
    };
    void this.#probe
      .run((cancel) => cancels.push(cancel))
      .then(({ failure }) => {
        if (this.#closed) return;
        this.#cancel = () => {};
        this.#record(failure);
        const { interval } = this.#check.settings;
        const next = interval * (1 + JITTER * (2 * this.#deps.random() - 1));
        this.#timer = setTimeout(() => this.#run(), Math.max(0, startedAt + next - performance.now()));
      });
  }

  #record(failure: string | undefined): void {
    const { check } = this.#endpoint;
    if (check === undefined) return;
    const passed = failure === undefined;
    if (passed) check.passed++;
    else check.failed++;
    if (passed === check.healthy) {
      this.#contrary = 0;
      if (failure !== undefined && failure !== check.reason) this.#announce(false, failure);
      return;
    }
    const { healthyThreshold, unhealthyThreshold } = this.#check.settings;
    const threshold = check.healthy === undefined ? 1 : passed ? healthyThreshold : unhealthyThreshold;
    if (++this.#contrary < threshold) return;
    this.#contrary = 0;
    this.#announce(passed, failure ?? "");
  }

  #announce(healthy: boolean, reason: string): void {
    const { key } = this.#endpoint;
    this.#deps.onChange(this.#endpoint, { key, healthy, reason });
  }
}
