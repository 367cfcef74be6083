/** The deadlines of one exchange: `requestTimeout` up to the response, and that of a gRPC client up to the end of the call. */
import { type ErrorCode, GatewayError } from "../../base/errors.ts";
import type { HeaderList } from "../../http/message/message.ts";
import { GrpcDeadline } from "./grpc-deadline.ts";

/** What the deadlines need of their exchange. */
interface Owner {
  readonly request: { readonly headers: HeaderList };
  /** `performance.now()` ms: both deadlines count from here. */
  readonly startedAt: number;
  readonly closed: boolean;
  readonly policyState: { readonly requestTimeout: number };
  readonly responseSide: { readonly started: boolean };
  readonly call: { expire(): void } | undefined;
  endPhase(error: GatewayError): void;
}

export class Deadlines {
  readonly #exchange: Owner;
  /** Runs while the exchange waits for a response. */
  #request: NodeJS.Timeout | undefined;
  /** Only of gRPC calls whose client has set a deadline. */
  #grpc: GrpcDeadline | undefined;

  constructor(exchange: Owner) {
    this.#exchange = exchange;
  }

  /** Starts the timer of `requestTimeout`, if it is set and the timer does not run; when the exchange waits. */
  start(): void {
    const { policyState, startedAt } = this.#exchange;
    const { requestTimeout } = policyState;
    if (requestTimeout === 0 || this.#request !== undefined) return;
    const left = Math.max(0, requestTimeout - (performance.now() - startedAt));
    this.#request = setTimeout(() => {
      const { closed, responseSide, call } = this.#exchange;
      if (closed || responseSide.started) return;
      call?.expire();
      this.#end("TG_REQUEST_TIMEOUT");
    }, left);
  }

  /** There is a response: its body may take as long as its sender and the client need. */
  stop(): void {
    if (this.#request === undefined) return;
    clearTimeout(this.#request);
    this.#request = undefined;
  }

  /** Starts the timer of a gRPC call, if its client has set a deadline. Throws TG_INVALID_REQUEST for a malformed one. */
  startGrpc(): void {
    const { request, startedAt } = this.#exchange;
    this.#grpc ??= GrpcDeadline.of(request.headers, startedAt, () => this.#end("TG_DEADLINE_EXCEEDED"));
  }

  /** See `GrpcDeadline.forward`. */
  forwardGrpc(headers: HeaderList): void {
    this.#grpc?.forward(headers);
  }

  /** The exchange is over. */
  close(): void {
    this.stop();
    this.#grpc?.stop();
  }

  #end(code: ErrorCode): void {
    this.#exchange.endPhase(new GatewayError(code));
  }
}
