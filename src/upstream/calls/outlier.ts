/** Outlier detection: what a call says about its endpoint, and when failures evict it. */
import type { Activation, CelEnvironment, Condition } from "../../cel/index.ts";
import { grpcStatusIn, isGrpc } from "../../http/grpc-reply.ts";
import type { HeaderList, HttpResponse } from "../../http/message/message.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import type { Eviction, Health } from "../settings/settings.ts";
import { retryAfter } from "./retry-after.ts";

/** Milliseconds of an eviction whose length nothing else determines (docs/configuration.md#healtheviction). */
const DEFAULT_EVICTION_MS = 3000;

/** What one call says about its endpoint. */
export interface CallOutcome {
  healthy: boolean;
  /** Milliseconds until the endpoint accepts the next call: `Retry-After` of a 429 and fields like it. */
  readonly wait: number | undefined;
  /** The head of a gRPC response, which the expression classifies again once the trailers have brought the status. */
  readonly head?: HttpResponse | undefined;
}

/** The call worked, without a response to classify: a tunnel or a UDP session. */
export const SUCCEEDED: CallOutcome = { healthy: true, wait: undefined };
/** There was no usable response. */
export const NO_RESPONSE: CallOutcome = { healthy: false, wait: undefined };

/** What `unhealthyExpression` reads. */
export interface OutcomeContext {
  /** The variables of the request with this response, which is not the one that the client gets, or not yet. */
  variablesWith(response: HttpResponse, trailers: HeaderList): Activation;
}

const NO_TRAILERS: HeaderList = [];

/**
 * Outlier detection of a backend (`health`, docs/policies/health.md): which calls have failed, and when failures evict the
 * endpoint. Passive: it learns from calls, it sends no probes.
 */
export class OutlierDetector {
  readonly #unhealthy: Condition | undefined;
  readonly #eviction: Eviction | undefined;

  /** Throws CelError for an expression that cannot be used. */
  constructor({ unhealthyExpression, eviction }: Health, cel: CelEnvironment) {
    this.#unhealthy =
      unhealthyExpression === undefined ? undefined : cel.compileCondition(unhealthyExpression, "response");
    this.#eviction = eviction;
  }

  /** `response` is as the backend has sent it: policies may change it afterwards. */
  classify(context: OutcomeContext, response: HttpResponse): CallOutcome {
    const wait = response.status === 429 ? retryAfter(response.headers, Date.now()) : undefined;
    const healthy = response.status < 500 && grpcSucceeded(response.headers);
    if (this.#unhealthy === undefined) return { healthy, wait };
    const { status, headers } = response;
    const head = isGrpc(headers) ? { status, headers: [...headers] } : undefined;
    return { healthy: !matches(this.#unhealthy, context.variablesWith(response, NO_TRAILERS), !healthy), wait, head };
  }

  /** gRPC says at the end how a call went: `response.grpcStatus` exists now, beside the head as the backend has sent it. */
  classifyTrailers(context: OutcomeContext, outcome: CallOutcome, trailers: HeaderList): void {
    const status = grpcStatusIn(trailers);
    if (status === undefined) return;
    const { head } = outcome;
    if (this.#unhealthy === undefined) outcome.healthy &&= status === 0;
    else if (head !== undefined)
      outcome.healthy = !matches(
        this.#unhealthy,
        context.variablesWith(head, trailers),
        head.status >= 500 || status !== 0,
      );
  }

  /**
   * The call is over after `seconds`. `backoff` of the retry policy in milliseconds: the length of an eviction if nothing else
   * determines it; 0 = none. Returns whether the endpoint is evicted for this call.
   */
  record(endpoint: Endpoint, outcome: CallOutcome, seconds: number, backoff: number): boolean {
    const now = performance.now();
    if (outcome.healthy) {
      // Ends an eviction whose time is over, so that its `restoreHealth` is set before this success counts.
      endpoint.isEvicted(now);
      endpoint.end(true, seconds);
      return false;
    }
    if (this.#eviction === undefined) {
      endpoint.end(false, 0);
      return false;
    }
    return endpoint.fail(
      this.#eviction,
      this.#eviction.duration ?? outcome.wait ?? (backoff || DEFAULT_EVICTION_MS),
      now,
    );
  }
}

/**
 * `otherwise`: the result where the condition fails. It may read the request, so a failure alone must not let a client evict
 * endpoints.
 */
function matches(condition: Condition, variables: Activation, otherwise: boolean): boolean {
  return condition.matches(variables, () => otherwise);
}

/** A response without `grpc-status` has not failed as far as gRPC is concerned. */
function grpcSucceeded(fields: HeaderList): boolean {
  return (grpcStatusIn(fields) ?? 0) === 0;
}
