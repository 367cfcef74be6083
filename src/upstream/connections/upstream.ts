import type { ResponseHead } from "../../http/h1/parse-head.ts";
import type { HeaderList } from "../../http/message/message.ts";

/**
 * Carries one exchange with an upstream: an HTTP/1.1 connection or an HTTP/2 stream. The head of the request has been sent; the
 * response goes to the caller's `UpstreamEvents`.
 */
export interface Upstream {
  /** Exchanges that its connection has served before. Above 0, a failure before the first byte may mean a stale connection. */
  readonly served: number;
  /** After a failure: the request was never sent, or the upstream has said that it did not process it (RFC 9113 8.7). */
  readonly refused: boolean;
  /** The bytes may be gathered until `flush`. The caller may reuse `buffer` after the call. False = wait for `onUpstreamDrain`. */
  sendBody(buffer: Buffer, from: number, to: number): boolean;
  sendEnd(trailers: HeaderList): void;
  /** Sends what was gathered. False = wait for `onUpstreamDrain`. */
  flush(): boolean;
  /** No more of the response's body is delivered until `resume`; what is held meanwhile is bounded. */
  pause(): void;
  resume(): void;
  /** Ends the exchange; the upstream sees a reset or a closed connection. No event follows. */
  destroy(): void;
}

/** Receives the events of one upstream exchange. Nothing follows `onResponseEnd` or `onUpstreamFailure`, except for a tunnel. */
export interface UpstreamEvents {
  onInformational(head: ResponseHead): void;
  /** `length`: bytes, UNKNOWN_LENGTH, or TUNNEL after a 101. `head` is valid during the call only; its header list stays. */
  onResponse(head: ResponseHead, length: number): void;
  onResponseBody(buffer: Buffer, from: number, to: number): void;
  /** All bytes of one read have been handed over: a good moment to flush. */
  onResponseBatch(): void;
  onResponseEnd(trailers: HeaderList): void;
  /** `answered`: some bytes of a response had arrived. */
  onUpstreamFailure(message: string, answered: boolean): void;
  /** Only for a tunnel, after `onResponseEnd`: the upstream accepts no more bytes, which is not an error. */
  onTunnelClosed?(): void;
  onUpstreamDrain(): void;
  /** One of the calls above has thrown, which is a defect of the gateway; the exchange is gone. */
  onUpstreamFault(error: unknown): void;
}

/** Registers a callback that ends a call early, such as `PolicyContext.onClose`. */
export type OnCancel = (callback: () => void) => void;
