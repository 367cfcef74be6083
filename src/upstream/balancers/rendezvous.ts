import { type Activation, type CelEnvironment, CelError, type Expression, readsBody } from "../../cel/index.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import type { SessionAffinity } from "../settings/settings.ts";
import type { Algorithm } from "./balancer.ts";
import { type Hash, hashOf, uniform } from "./key-hash.ts";

/**
 * The endpoint for a key by rendezvous hashing (highest random weight, Thaler and Ravishankar 1998), weighted by capacity: the same
 * in every worker and after every reload. When an endpoint is added, removed or evicted, only its keys move. Unlike a hash ring it
 * needs no table; it costs one hash per endpoint. Requests without a key use `otherwise`.
 */
export function rendezvous(otherwise: Algorithm): Algorithm {
  return (bucket, key) => (key === undefined ? otherwise(bucket, key) : highestWeight(bucket.endpoints, hashOf(key)));
}

function highestWeight(endpoints: readonly Endpoint[], key: Hash): Endpoint {
  let [best] = endpoints as readonly [Endpoint, ...Endpoint[]];
  let highest = Number.NEGATIVE_INFINITY;
  for (const endpoint of endpoints) {
    // -w / ln(u), with u uniform in (0, 1), is highest with probability proportional to w.
    const weight = -endpoint.capacity / Math.log(uniform(key, addressHash(endpoint)));
    if (weight <= highest) continue;
    highest = weight;
    best = endpoint;
  }
  return best;
}

/** By address alone: a new capacity or other connection settings move as few keys as possible. */
function addressHash(endpoint: Endpoint): Hash {
  let hash = addressHashes.get(endpoint);
  if (hash === undefined) {
    hash = hashOf(Buffer.from(endpoint.pool.name, "utf8"));
    addressHashes.set(endpoint, hash);
  }
  return hash;
}

const addressHashes = new WeakMap<Endpoint, Hash>();

/**
 * The key of session affinity (`sessionAffinity`, docs/policies/session-affinity.md): requests with the same value share an
 * endpoint.
 */
export class AffinityKey {
  readonly #source: Expression;
  /** The request's body has to be complete when the key is read. */
  readonly readsBody: boolean;

  /** Throws CelError for an expression that cannot be used. */
  constructor({ source }: SessionAffinity, cel: CelEnvironment) {
    this.#source = cel.compileExpression(source, "request");
    this.readsBody = readsBody(this.#source, "request");
  }

  /** undefined if the expression fails or returns nothing: the request is balanced as without affinity. */
  read(variables: Activation): Uint8Array | undefined {
    try {
      const value = this.#source.evaluate(variables);
      const bytes = typeof value === "string" ? Buffer.from(value, "utf8") : value;
      return bytes instanceof Uint8Array && bytes.length > 0 ? bytes : undefined;
    } catch (error) {
      if (error instanceof CelError) return undefined;
      throw error;
    }
  }
}
