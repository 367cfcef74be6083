/**
 * Leader election by a Lease (coordination.k8s.io/v1), with the algorithm and times of client-go: of several replicas, one
 * writes. Clocks of replicas may differ: a lease has expired when this replica has not seen it change for its duration.
 */
import { setTimeout as delay } from "node:timers/promises";
import { messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import { type KubeClient, KubeError } from "../kube/client.ts";

interface LeaderElectionOptions {
  /** A client with its own rate limit: a renewal must not wait for thousands of statuses. */
  readonly client: KubeClient;
  readonly namespace: string;
  /** Of the Lease. */
  readonly name: string;
  /** Unique among replicas. */
  readonly identity: string;
  readonly log: Logger;
  /** Called with true when this replica becomes the leader, with false when it may no longer write. */
  readonly onChange: (leading: boolean) => void;
  readonly times?: LeaseTimes;
}

/** In milliseconds. */
export interface LeaseTimes {
  /** How long others respect a lease that is not renewed. */
  readonly lease: number;
  /** How long the leader keeps writing after its last renewal; less than `lease`, so that there are never two. */
  readonly renewWithin: number;
  readonly retryEvery: number;
}

const TIMES: LeaseTimes = { lease: 15_000, renewWithin: 10_000, retryEvery: 2_000 };

interface Lease {
  readonly metadata: { readonly name: string; readonly namespace: string; readonly resourceVersion?: string };
  readonly spec: LeaseSpec;
}

interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  readonly acquireTime?: string;
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
}

export class LeaderElection {
  readonly #options: LeaderElectionOptions;
  readonly #times: LeaseTimes;
  readonly #collection: string;
  #leading = false;
  #observed: { readonly lease: Lease; readonly at: number } | undefined;
  #expiry: NodeJS.Timeout | undefined;

  constructor(options: LeaderElectionOptions) {
    this.#options = options;
    this.#times = options.times ?? TIMES;
    this.#collection = `/apis/coordination.k8s.io/v1/namespaces/${options.namespace}/leases`;
  }

  get leading(): boolean {
    return this.#leading;
  }

  /** Takes part until `signal` aborts, then gives up the lease, so that another replica can take it at once. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#acquireOrRenew(signal);
      } catch (error) {
        if (!signal.aborted) this.#failed(error);
      }
      const pause = this.#times.retryEvery * (this.#leading ? 1 : 1 + Math.random() * 0.2);
      await delay(pause, undefined, { signal }).catch(() => {});
    }
    await this.#release();
  }

  async #acquireOrRenew(signal: AbortSignal): Promise<void> {
    const { client, identity, log } = this.#options;
    const limit = AbortSignal.any([signal, AbortSignal.timeout(this.#times.renewWithin / 2)]);
    const startedAt = performance.now();
    // A leader knows the lease that it wrote; a change by another writer causes a conflict.
    let lease = this.#leading ? this.#observed?.lease : undefined;
    lease ??= await this.#read(limit);
    const holder = lease?.spec.holderIdentity ?? "";
    if (lease !== undefined && holder !== "" && holder !== identity && !this.#hasExpired(lease)) {
      this.#follow(holder);
      return;
    }
    const now = microTime();
    const own = holder === identity;
    const spec: LeaseSpec = {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(this.#times.lease / 1000),
      acquireTime: own ? (lease?.spec.acquireTime ?? now) : now,
      renewTime: now,
      leaseTransitions: (lease?.spec.leaseTransitions ?? 0) + (lease === undefined || own ? 0 : 1),
    };
    this.#observe(await this.#write(lease, spec, limit, client));
    clearTimeout(this.#expiry);
    // A timer of its own, because the next attempt may hang.
    const left = this.#times.renewWithin - (performance.now() - startedAt);
    this.#expiry = setTimeout(() => this.#set(false, "the lease was not renewed in time"), left);
    this.#expiry.unref();
    if (!this.#leading) log.info("leading", { identity });
    this.#set(true);
  }

  async #read(signal: AbortSignal): Promise<Lease | undefined> {
    const { client, name } = this.#options;
    try {
      const lease = await client.request<Lease>("GET", `${this.#collection}/${name}`, { signal });
      this.#observe(lease);
      return lease;
    } catch (error) {
      if (error instanceof KubeError && error.status === 404) return undefined;
      throw error;
    }
  }

  #write(lease: Lease | undefined, spec: LeaseSpec, signal: AbortSignal, client: KubeClient): Promise<Lease> {
    const { name, namespace } = this.#options;
    const resourceVersion = lease?.metadata.resourceVersion;
    const body = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name, namespace, ...(resourceVersion !== undefined && { resourceVersion }) },
      spec,
    };
    return lease === undefined
      ? client.request<Lease>("POST", this.#collection, { body, signal })
      : client.request<Lease>("PUT", `${this.#collection}/${name}`, { body, signal });
  }

  #observe(lease: Lease): void {
    if (lease.metadata.resourceVersion !== this.#observed?.lease.metadata.resourceVersion)
      this.#observed = { lease, at: performance.now() };
  }

  #hasExpired({ spec }: Lease): boolean {
    const duration = (spec.leaseDurationSeconds ?? 0) * 1000;
    return performance.now() - (this.#observed?.at ?? 0) > duration;
  }

  #follow(holder: string): void {
    if (this.#leading) this.#set(false, `${holder} has taken the lease`);
  }

  #failed(error: unknown): void {
    const { log } = this.#options;
    if (error instanceof KubeError && error.status === 409) {
      // Another replica has written it, or this one has and missed the response: read it again. Before `renewWithin` has passed,
      // no other replica can consider it expired.
      this.#observed = undefined;
      return;
    }
    log.warn("leader election: request failed", { error: messageOf(error) });
  }

  #set(leading: boolean, why?: string): void {
    if (leading === this.#leading) return;
    this.#leading = leading;
    if (why !== undefined) this.#options.log.warn("no longer leading", { why });
    this.#options.onChange(leading);
  }

  async #release(): Promise<void> {
    clearTimeout(this.#expiry);
    if (!this.#leading) return;
    this.#set(false);
    const { client, identity, log } = this.#options;
    const limit = AbortSignal.timeout(this.#times.retryEvery);
    try {
      // Read it: the renewal that was cut short may have arrived.
      const lease = await this.#read(limit);
      if (lease?.spec.holderIdentity !== identity) return;
      const now = microTime();
      const { leaseTransitions = 0 } = lease.spec;
      const times = { leaseDurationSeconds: 1, acquireTime: now, renewTime: now, leaseTransitions };
      await this.#write(lease, { holderIdentity: "", ...times }, limit, client);
      log.info("released the lease");
    } catch (error) {
      log.warn("the lease could not be released; another replica waits until it expires", { error: messageOf(error) });
    }
  }
}

/** RFC 3339 with microseconds, as Lease times must be. */
function microTime(): string {
  return new Date().toISOString().replace("Z", "000Z");
}
