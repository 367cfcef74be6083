import { Sweeper } from "../../base/sweeper.ts";
import { ANYWHERE } from "../../net/testing/egress.ts";
import { SingleEndpoint } from "../../upstream/balancers/balancer.ts";
import { Callout } from "../../upstream/callouts/callout.ts";
import type { Endpoint } from "../../upstream/endpoints/endpoint.ts";
import { Endpoints } from "../../upstream/endpoints/endpoints.ts";
import { Pools } from "../../upstream/pools/pools.ts";
import { Resolver } from "../../upstream/resolve/resolver.ts";
import { compileCallPolicies } from "../calls/compile.ts";
import type { Callouts, PolicyDeps } from "../contract/deps.ts";
import { DEPS } from "./context.ts";

/** Callouts over real connections to services at fixed addresses, without TLS, for policies under test. Dispose closes them. */
export class TestCallouts implements Disposable {
  readonly #sweeper = new Sweeper();
  readonly #endpoints: Endpoints;
  readonly #held: Endpoint[] = [];

  constructor() {
    const settings = { connectTimeout: 10_000, idleTimeout: 90_000, maxIdle: undefined, keepAliveDelay: 0 };
    const pools = new Pools(settings, new Resolver("All", ANYWHERE), { onConnected: () => {} }, this.#sweeper);
    this.#endpoints = new Endpoints(pools);
  }

  readonly callouts: Callouts = (target, policies) => {
    if (target.type !== "static") throw new Error(`a test has no services of type ${target.type}`);
    const endpoint = this.#endpoints.acquire({ host: target.host, port: target.port }, 1);
    this.#held.push(endpoint);
    return new Callout(new SingleEndpoint(endpoint), policies && compileCallPolicies(policies, DEPS));
  };

  /** Dependencies of policies that call them. */
  readonly deps: PolicyDeps = { ...DEPS, callouts: this.callouts };

  [Symbol.dispose](): void {
    this.#endpoints.release(this.#held);
    this.#sweeper.close();
  }
}
