/** What a request with a `retry` policy keeps from one attempt to the next. */
import { decimal, type HttpRequest, madeOf, setHeader } from "../../http/message/message.ts";
import type { RetryPlan } from "../../policies/contract/types.ts";
import type { BackendCalls } from "../../upstream/endpoints/endpoints.ts";
import type { CompiledBackend } from "../compile/compiled.ts";

export class Retries {
  readonly plan: RetryPlan;
  /** Retries so far. */
  count = 0;
  /** Backends of earlier attempts; only with `otherBackends`. */
  tried: Set<CompiledBackend> | undefined;
  /** The request before the policies of the backend changed it. */
  readonly #original: HttpRequest;
  /** The backend whose limits count the request as retried. */
  #counted: BackendCalls | undefined;

  constructor(plan: RetryPlan, request: HttpRequest) {
    this.plan = plan;
    this.#original = copyOf(request);
  }

  /** Makes `request` what it was before the first attempt, with the number of this one. */
  restore(request: HttpRequest): void {
    if (this.count === 0) return;
    Object.assign(request, copyOf(this.#original));
    setHeader(request.headers, "x-retry-attempt", decimal(this.count));
  }

  isCountedBy(calls: BackendCalls): boolean {
    return this.#counted === calls;
  }

  /**
   * `calls` have counted the request as retried. It counts at one backend until it ends or goes to another one, however many retries it
   * has.
   */
  countedAt(calls: BackendCalls | undefined): void {
    this.#counted?.retrying.end();
    this.#counted = calls;
  }
}

function copyOf(request: HttpRequest): HttpRequest {
  return { ...request, headers: madeOf(request.headers, [...request.headers]) };
}
