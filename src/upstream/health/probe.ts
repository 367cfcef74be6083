import { asError } from "../../base/errors.ts";
import { SingleEndpoint } from "../balancers/balancer.ts";
import { Callout, NEEDS_STATUS, reasonOf } from "../callouts/callout.ts";
import { NEEDS_BODY } from "../callouts/http-call.ts";
import type { OnCancel } from "../connections/upstream.ts";
import { Endpoint } from "../endpoints/endpoint.ts";
import type { HealthCheck } from "../endpoints/health-check.ts";
import type { Pools } from "../pools/pools.ts";
import type { PoolTarget } from "../settings/pool-target.ts";
import type { HttpHealthCheck } from "../settings/settings.ts";

/** How a probe ended. */
interface ProbeOutcome {
  /** Why the endpoint is not healthy; undefined for a healthy one. */
  readonly failure: string | undefined;
  /** See `ProbeResult`. */
  readonly status?: number | string;
}

const NO_BODY = new Uint8Array(0);
const AGENT = ["user-agent", "tracegate-health-check"];

/**
 * Probes one endpoint, on separate connections: if all those of requests are in use, a probe would wait behind requests and fail
 * because of load, not health.
 */
export class Probe {
  readonly #pools: Pools;
  readonly #check: HealthCheck;
  readonly #endpoint: Endpoint;
  readonly #callout: Callout;

  constructor(target: PoolTarget, check: HealthCheck, pools: Pools) {
    this.#pools = pools;
    this.#check = check;
    this.#endpoint = new Endpoint("", pools.acquire(probeTarget(target, check)), 1);
    this.#callout = new Callout(new SingleEndpoint(this.#endpoint), check.prepare);
  }

  /** Where it goes: the check may have a port of its own. */
  get address(): string {
    return this.#endpoint.pool.name;
  }

  /** Never resolves after a cancellation. */
  async run(onCancel: OnCancel): Promise<ProbeOutcome> {
    const { http, grpc } = this.#check.settings;
    try {
      if (http !== undefined) return await this.#http(http, onCancel);
      if (grpc !== undefined) return await this.#grpc(grpc.service, onCancel);
      return { failure: await this.#tcp(onCancel) };
    } catch (error) {
      return { failure: reasonOf(asError(error)) };
    }
  }

  /** Releases its connections. */
  close(): void {
    this.#pools.release(this.#endpoint.pool);
  }

  async #http({ path, host, expectedStatuses }: HttpHealthCheck, onCancel: OnCancel): Promise<ProbeOutcome> {
    const { status } = await this.#callout.http(
      {
        method: "GET",
        path,
        ...(host !== undefined && { authority: host }),
        headers: [...AGENT],
        body: NO_BODY,
        timeoutMs: this.#check.settings.timeout,
        maxBytes: 0,
        dropBody: true,
        headDecides: NEEDS_BODY,
      },
      { onCancel, observer: undefined },
    );
    const expected = expectedStatuses?.includes(status) ?? (status >= 200 && status < 400);
    return { failure: expected ? undefined : `status ${status}`, status };
  }

  async #grpc(service: string, onCancel: OnCancel): Promise<ProbeOutcome> {
    const { check } = await import("./grpc-method.ts");
    const { timeout } = this.#check.settings;
    const context = { onCancel, observer: undefined };
    const answer = await this.#callout.unary(check.path, check.encode(service), timeout, NEEDS_STATUS, context);
    const status = check.decode(answer);
    return { failure: status === "SERVING" ? undefined : `the service is ${status}`, status };
  }

  #tcp(onCancel: OnCancel): Promise<string | undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        wait.cancel();
        resolve("no connection in time");
      }, this.#check.settings.timeout);
      const wait = this.#endpoint.pool.connect(
        {
          onConnection(connection) {
            clearTimeout(timer);
            connection.destroy();
            resolve(undefined);
          },
          onConnectFailure(_code, message) {
            clearTimeout(timer);
            resolve(message);
          },
        },
        true,
      );
      onCancel(() => {
        clearTimeout(timer);
        wait.cancel();
      });
    });
  }
}

function probeTarget(target: PoolTarget, { settings: { port } }: HealthCheck): PoolTarget {
  return "host" in target && port !== undefined ? { ...target, port } : target;
}
