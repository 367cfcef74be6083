import { GatewayError } from "../base/errors.ts";
import type { Balancer } from "./balancer.ts";
import { type CallRequest, type CallResponse, callUpstream } from "./call.ts";
import type { Endpoint } from "./endpoint.ts";
import type { GrpcStream, GrpcStreamEvents } from "./grpc-channel.ts";
import type { OnCancel } from "./on-cancel.ts";

/** Who is told of a call. */
export interface CallObserver {
  /** `target` as `host:port`. */
  started(target: string): void;
  ended(status: number | null, error: string | null): void;
}

interface CallContext {
  /** Calls back when nobody waits for the answer any more. */
  readonly onCancel: OnCancel;
  readonly observer: CallObserver | undefined;
}

/**
 * A service that the gateway itself asks, such as one that authorizes requests. Each call chooses an endpoint; failures are
 * GatewayErrors whose `cause` says what happened.
 */
export class Callout {
  readonly #balancer: Balancer;

  constructor(balancer: Balancer) {
    this.#balancer = balancer;
  }

  /** One HTTP request. */
  http(request: CallRequest, { onCancel, observer }: CallContext): Promise<CallResponse> {
    return observed(
      this.#choose(),
      observer,
      ({ status }) => status,
      (endpoint) => callUpstream(endpoint, request, onCancel),
    );
  }

  /** One gRPC call: a message each way. */
  unary(
    method: string,
    message: Uint8Array,
    timeoutMs: number,
    { onCancel, observer }: CallContext,
  ): Promise<Uint8Array> {
    return observed(
      this.#choose(),
      observer,
      () => 200,
      (endpoint) => {
        const startedAt = performance.now();
        endpoint.begin();
        let over = false;
        onCancel(() => {
          if (!over) endpoint.abandon();
          over = true;
        });
        return endpoint.pool.grpc.unary(method, message, timeoutMs, onCancel).then(
          (answer) => {
            over = true;
            endpoint.end(true, (performance.now() - startedAt) / 1000);
            return answer;
          },
          (error: unknown) => {
            over = true;
            endpoint.end(false, 0);
            throw error;
          },
        );
      },
    );
  }

  /** One gRPC call with messages both ways; the caller ends or cancels it. */
  stream(method: string, events: GrpcStreamEvents, observer: CallObserver | undefined): Promise<GrpcStream> {
    const endpoint = this.#choose();
    if (endpoint === undefined) return Promise.reject(new GatewayError("TG_NO_HEALTHY_BACKENDS"));
    observer?.started(endpoint.pool.name);
    return endpoint.pool.grpc.stream(method, {
      onMessage: (message) => events.onMessage(message),
      onDrain: () => events.onDrain(),
      onEnd(error) {
        observer?.ended(error === undefined ? 200 : null, error === undefined ? null : reasonOf(error));
        events.onEnd(error);
      },
    });
  }

  #choose(): Endpoint | undefined {
    return this.#balancer.choose();
  }
}

/** A service without endpoints. */
export const NOWHERE = new Callout({ endpoints: [], choose: () => undefined, candidates: () => [] });

/** What really happened, for the log: `cause` where there is one. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}

async function observed<Answer>(
  endpoint: Endpoint | undefined,
  observer: CallObserver | undefined,
  statusOf: (answer: Answer) => number,
  call: (endpoint: Endpoint) => Promise<Answer>,
): Promise<Answer> {
  if (endpoint === undefined) throw new GatewayError("TG_NO_HEALTHY_BACKENDS");
  observer?.started(endpoint.pool.name);
  try {
    const answer = await call(endpoint);
    observer?.ended(statusOf(answer), null);
    return answer;
  } catch (error) {
    observer?.ended(null, reasonOf(error));
    throw error;
  }
}
