import { GatewayError } from "../../base/errors.ts";
import { CelError } from "../../cel/index.ts";
import { type HeaderList, type HttpRequest, type Latin1, madeOf, setHeader } from "../../http/message/message.ts";
import { latin1 } from "../../http/message/syntax.ts";
import type { Balancer } from "../balancers/balancer.ts";
import type { OnCancel } from "../connections/upstream.ts";
import { type GrpcStream, type GrpcStreamEvents, grpcStream, grpcUnary } from "./grpc-call.ts";
import { type CalloutObserver, type CalloutRequest, type CalloutResponse, callUpstream } from "./http-call.ts";

/** Circumstances of one call. `Answer`: the type that the call resolves with. */
interface CalloutCircumstances<Context, Answer = never> {
  /** Registers a callback that cancels the call when its response is no longer needed. */
  readonly onCancel: OnCancel;
  readonly observer: CalloutObserver | undefined;
  /** What the call is for, such as `ext_authz`. */
  readonly scope?: string;
  /** CDN-Loop of the call; absent for calls that do not belong to a client's request. */
  readonly loop?: Latin1 | undefined;
  /** Absent for calls that do not belong to a client's request. */
  readonly calloutContext?: Context;
  /**
   * Called with the request as it is about to be sent, after the policies of the service. Its result replaces the call; if it returns
   * undefined, the call is made.
   */
  readonly recall?: (sent: CalloutHead) => Answer | undefined;
}

/** A callout's request before it is sent. */
export interface CalloutHead extends HttpRequest {
  /** Absent for gRPC. */
  body?: Uint8Array;
}

/**
 * Applies the policies of the service to a request before it is sent, such as by adding credentials. May wait within the timeout of
 * the call. Fails with a GatewayError.
 */
export type PrepareCallout<Context> = (
  request: CalloutHead,
  calloutContext: Context | undefined,
) => void | Promise<void>;

/** Responds in place of services, for rehearsals. Undefined: the call is made. */
export interface CalloutAnswers {
  http(scope: string | undefined): CalloutResponse | undefined;
  unary(scope: string | undefined): Uint8Array | undefined;
  /** Throws a GatewayError if the service is to fail. */
  stream(events: GrpcStreamEvents): GrpcStream;
}

/**
 * A service that policies call, such as an authorization service or the destination of mirrored requests. Each call chooses its own
 * endpoint. Failures are GatewayErrors; their `cause` is the reason, for logs and traces only. `Context`: what the policies of the
 * service read of the exchange that the call is made for.
 */
export class Callout<Context = never> {
  readonly #balancer: Balancer;
  readonly #prepare: PrepareCallout<Context> | undefined;
  readonly #answers: CalloutAnswers | undefined;

  constructor(balancer: Balancer, prepare?: PrepareCallout<Context>, answers?: CalloutAnswers) {
    this.#balancer = balancer;
    this.#prepare = prepare;
    this.#answers = answers;
  }

  /** The same service, with `answers` in place of its responses; a service without endpoints gives none. */
  answeredBy(answers: CalloutAnswers): Callout<Context> {
    return this === NO_UPSTREAM ? this : new Callout(this.#balancer, this.#prepare, answers);
  }

  /** One HTTP request; its response is read into memory, up to `maxBytes`. */
  async http(
    request: CalloutRequest,
    context: CalloutCircumstances<Context, CalloutResponse>,
  ): Promise<CalloutResponse> {
    const [path = "", query] = split(request.path);
    const { method, authority = "" } = request;
    const head: CalloutHead = headOf(
      "HTTP/1.1",
      method,
      path,
      query,
      authority,
      madeOf(request.headers, [...request.headers]),
    );
    head.body = request.body;
    const timeoutMs = await this.#prepared(head, request.timeoutMs, context);
    const known = this.#answers?.http(context.scope) ?? context.recall?.(head);
    if (known !== undefined) return known;
    return callUpstream(
      this.#balancer,
      {
        ...request,
        loop: context.loop,
        method: head.method,
        path: head.path + head.search,
        headers: head.headers,
        body: head.body ?? request.body,
        timeoutMs,
        ...(head.authority !== "" && { authority: head.authority }),
      },
      context.onCancel,
      context.observer,
    );
  }

  /** One gRPC call: one message each way. `messageDecides`: as for `grpcUnary`; `NEEDS_STATUS` if only a successful call counts. */
  async unary(
    method: string,
    message: Uint8Array,
    timeoutMs: number,
    messageDecides: (message: Uint8Array) => boolean,
    context: CalloutCircumstances<Context, Uint8Array>,
  ): Promise<Uint8Array> {
    const head = headOf("HTTP/2", "POST", method);
    const left = await this.#prepared(head, timeoutMs, context);
    const known = this.#answers?.unary(context.scope) ?? context.recall?.(head);
    if (known !== undefined) return known;
    const request = { method, head, timeoutMs: left, loop: context.loop };
    return grpcUnary(this.#balancer, request, message, context.onCancel, context.observer, messageDecides);
  }

  /**
   * One gRPC call with messages both ways; the caller ends or cancels it. `timeoutMs` limits the time until the call can be sent;
   * it does not limit the messages.
   */
  async stream(
    method: string,
    events: GrpcStreamEvents,
    timeoutMs: number,
    context: CalloutCircumstances<Context>,
  ): Promise<GrpcStream> {
    const head = headOf("HTTP/2", "POST", method);
    await this.#prepared(head, timeoutMs, context);
    if (this.#answers !== undefined) return this.#answers.stream(events);
    return grpcStream(this.#balancer, { method, head, timeoutMs: 0, loop: context.loop }, events, context.observer);
  }

  /** Resolves with the milliseconds that are left of `timeoutMs`; never settles after a cancellation. */
  async #prepared(
    head: CalloutHead,
    timeoutMs: number,
    {
      calloutContext,
      observer,
      onCancel,
    }: Pick<CalloutCircumstances<Context>, "calloutContext" | "observer" | "onCancel">,
  ): Promise<number> {
    if (observer?.traceparent !== undefined) setHeader(head.headers, "traceparent", latin1(observer.traceparent));
    const waiting = this.#prepare?.(head, calloutContext);
    if (waiting === undefined) return timeoutMs;
    const startedAt = performance.now();
    await new Promise<void>((resolve, reject) => {
      const late = (): void => reject(new GatewayError("TG_UPSTREAM_TIMEOUT", undefined, new Error(NOT_READY)));
      const timer = setTimeout(late, timeoutMs);
      let cancelled = false;
      onCancel(() => {
        cancelled = true;
        clearTimeout(timer);
      });
      waiting
        .finally(() => clearTimeout(timer))
        .then(
          () => cancelled || resolve(),
          (error: unknown) => cancelled || reject(error),
        );
    });
    return Math.max(1, timeoutMs - (performance.now() - startedAt));
  }
}

/** `messageDecides` of calls whose response counts only if the call succeeds. */
export const NEEDS_STATUS = (): boolean => false;

const NOT_READY = "the credentials for the call were not ready in time";

/** Path, and query with its question mark. */
function split(target: string): [path: string, query: string] {
  const mark = target.indexOf("?");
  return mark < 0 ? [target, ""] : [target.slice(0, mark), target.slice(mark)];
}

/** `authority`: `` = the name or address of the target. */
function headOf(
  version: HttpRequest["version"],
  method: string,
  path: string,
  search = "",
  authority = "",
  headers: HeaderList = [],
): HttpRequest {
  return { method, scheme: "http", authority, path, search, version, headers };
}

/** A service without endpoints. */
export const NO_UPSTREAM = new Callout<unknown>({
  endpoints: [],
  choose: () => undefined,
  hasOther: () => false,
  find: () => undefined,
});

/** The reason of a failure, for the log: the message of its `cause`, if it has one. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return lineOf(error.cause instanceof Error ? error.cause : error);
}

/** The message of an error, without the text of an expression that failed: that would take lines of its own, and may contain a secret. */
export function lineOf(error: Error): string {
  return error instanceof CelError ? error.what : error.message;
}
