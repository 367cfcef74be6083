import {
  type Activation,
  CelError,
  type Condition,
  compileCondition,
  compileExpression,
  type Expression,
} from "../cel/index.ts";
import { grpcStatusIn, isGrpc } from "../http/grpc-reply.ts";
import type { HeaderList, HttpResponse } from "../http/message.ts";
import type { Balancer } from "./balancer.ts";
import type { Endpoint } from "./endpoint.ts";
import { rendezvous } from "./rendezvous.ts";
import { retryAfter } from "./retry-after.ts";
import type { Eviction, Health, SessionAffinity } from "./settings.ts";

/** Of evictions for which nothing gives another time (reference 3.26). */
const DEFAULT_EVICTION_MS = 3000;

/** What the policies of a backend say about the choice and the health of its endpoints. */
export interface EndpointRules {
  readonly health: OutlierDetector | undefined;
  readonly affinity: Affinity | undefined;
}

/** undefined, as for most backends, when they say nothing. Throws CelError for expressions that cannot be used. */
export function endpointRules({
  health,
  sessionAffinity,
}: {
  readonly health?: Health;
  readonly sessionAffinity?: SessionAffinity;
}): EndpointRules | undefined {
  if (health === undefined && sessionAffinity === undefined) return undefined;
  return {
    health: health && new OutlierDetector(health),
    affinity: sessionAffinity && new Affinity(sessionAffinity),
  };
}

/** What the answer to one call says about the endpoint. */
export interface CallOutcome {
  healthy: boolean;
  /** Milliseconds that the answer asks for until the next call. */
  readonly wait: number | undefined;
  /** The head of an answer that an expression judges again when gRPC has told how the call went. */
  readonly head?: HttpResponse | undefined;
}

/** The part of an exchange that decides its outcome. */
interface ClassifiedCall {
  response: HttpResponse | undefined;
  trailers: HeaderList;
  readonly variables: Activation;
}

/** There was no usable answer. */
export const NO_RESPONSE: CallOutcome = { healthy: false, wait: undefined };

/** Which calls have failed, and what follows from that for the endpoint (reference 3.26). */
export class OutlierDetector {
  readonly #unhealthy: Condition | undefined;
  readonly #eviction: Eviction | undefined;

  constructor({ unhealthyExpression, eviction }: Health) {
    this.#unhealthy = unhealthyExpression === undefined ? undefined : compileCondition(unhealthyExpression, "response");
    this.#eviction = eviction;
  }

  /** Called with the response as the backend has sent it: policies may change it. */
  classify(x: ClassifiedCall, response: HttpResponse): CallOutcome {
    const wait = response.status === 429 ? retryAfter(response.headers, Date.now()) : undefined;
    const healthy = response.status < 500 && grpcSucceeded(response.headers);
    if (this.#unhealthy === undefined) return { healthy, wait };
    const { status, headers } = response;
    const head = isGrpc(headers) ? { status, headers: [...headers] } : undefined;
    return { healthy: !matches(this.#unhealthy, x, response, x.trailers, !healthy), wait, head };
  }

  /** gRPC says at the end how a call went: then `response.grpcStatus` is there, and the head as the backend has sent it. */
  classifyTrailers(x: ClassifiedCall, outcome: CallOutcome, trailers: HeaderList): void {
    const status = grpcStatusIn(trailers);
    if (status === undefined) return;
    if (this.#unhealthy === undefined) outcome.healthy &&= status === 0;
    else if (outcome.head !== undefined)
      outcome.healthy = !matches(
        this.#unhealthy,
        x,
        outcome.head,
        trailers,
        outcome.head.status >= 500 || status !== 0,
      );
  }

  /** The call is over after `seconds`. `backoff`: of the retry policy, ms; 0 = none. */
  end(endpoint: Endpoint, outcome: CallOutcome, seconds: number, backoff: number): void {
    const now = performance.now();
    if (outcome.healthy) {
      endpoint.isEvicted(now);
      endpoint.end(true, seconds);
    } else if (this.#eviction === undefined) endpoint.end(false, 0);
    else {
      const duration = this.#eviction.duration ?? outcome.wait ?? (backoff || DEFAULT_EVICTION_MS);
      endpoint.fail(this.#eviction, duration, now);
    }
  }
}

/** Requests with the same value go to the same endpoint (reference 3.27). */
export class Affinity {
  readonly #source: Expression;

  constructor({ source }: SessionAffinity) {
    this.#source = compileExpression(source, "request");
  }

  choose(variables: Activation, balancer: Balancer): Endpoint | undefined {
    const key = this.#keyOf(variables);
    return key === undefined ? balancer.choose() : rendezvous(balancer.candidates(), key);
  }

  /** undefined when the expression fails or gives nothing. */
  #keyOf(variables: Activation): Uint8Array | undefined {
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

/**
 * What the condition says of an answer that is not the one that the client gets, or not yet. `otherwise`: what holds without
 * the condition, and where it fails. It may read the request, so a failure alone must not let a client evict endpoints.
 */
function matches(
  condition: Condition,
  x: ClassifiedCall,
  response: HttpResponse,
  trailers: HeaderList,
  otherwise: boolean,
): boolean {
  const before = { response: x.response, trailers: x.trailers };
  x.response = response;
  x.trailers = trailers;
  const matched = condition.matches(x.variables, () => otherwise);
  x.response = before.response;
  x.trailers = before.trailers;
  return matched;
}

/** HTTP without gRPC succeeds as far as gRPC is concerned. */
function grpcSucceeded(fields: HeaderList): boolean {
  return (grpcStatusIn(fields) ?? 0) === 0;
}
