import { messageOf } from "../base/errors.ts";
import type { Addresses } from "../net/addresses.ts";
import type { ConnectHandler } from "../net/connect.ts";
import { ConnectionStage } from "../net/connection-stage.ts";
import { latin1Slice } from "../net/node-internals.ts";
import type { ByteStream, Transport, TransportHandler } from "../net/transport.ts";
import { findHeadEnd } from "./h1/head-end.ts";
import { parseResponseHead, ResponseHead } from "./h1/parse-head.ts";
import { headEnd } from "./loop.ts";
import type { Latin1 } from "./message/message.ts";

const LIMITS = { maxHeaders: 100, maxTargetSize: 0 };
/** Largest head of a response from the proxy, bytes. Real ones are short. */
const MAX_HEAD = 16 * 1024;

/** Receives the result; exactly one of the calls follows. */
interface TunnelWaiter {
  /** `stream` carries bytes to the target and back; `from` has the addresses of the connection to the proxy. */
  onTunnel(stream: ByteStream, from: Addresses): void;
  onTunnelFailure(error: Error): void;
}

/**
 * Asks an HTTP proxy for a connection to another host (CONNECT, RFC 9110 9.3.6), on a connection opened with `givenAway`. The
 * deadline is that of the whole attempt to connect, which destroys the connection.
 */
export class ProxyTunnel extends ConnectionStage implements ConnectHandler {
  readonly #authority: string;
  readonly #authorization: string | undefined;
  readonly #loop: Latin1;
  readonly #waiter: TunnelWaiter;

  /**
   * `authority`: `host:port` to connect to; `authorization`: value of Proxy-Authorization. `loop`: CDN-Loop, because the proxy may lead
   * back to this gateway (loop.ts).
   */
  constructor(authority: string, authorization: string | undefined, loop: Latin1, waiter: TunnelWaiter) {
    super({
      onStagePassed() {},
      onStageFailed: (_stage, message) => waiter.onTunnelFailure(new Error(message)),
      onFault: (error) => this.reject(messageOf(error)),
    });
    this.#authority = authority;
    this.#authorization = authorization;
    this.#loop = loop;
    this.#waiter = waiter;
  }

  protected readonly state = "tunnel";
  protected readonly closedEarly = "the proxy closed the connection instead of opening a tunnel";

  onConnect(transport: Transport): TransportHandler {
    this.begin(transport, undefined);
    const authority = this.#authority;
    const credentials = this.#authorization === undefined ? "" : `proxy-authorization: ${this.#authorization}\r\n`;
    transport.writeText(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n${credentials}${headEnd(this.#loop)}`);
    return this;
  }

  protected onHeld(): void {
    const { held } = this;
    while (!this.closed) {
      const headEnd = findHeadEnd(held.bytes, held.start, held.end);
      if (headEnd === -1) {
        if (held.length > MAX_HEAD) this.reject("the head of the proxy's response is too large");
        return;
      }
      const head = new ResponseHead();
      const error = parseResponseHead(latin1Slice(held.bytes, held.start, headEnd), LIMITS, head, false);
      held.consume(headEnd);
      if (error !== undefined) this.reject(`the proxy's response is invalid: ${error.detail}`);
      else if (head.status >= 300 || head.status === 101)
        this.reject(`the proxy returned ${head.status} to CONNECT ${this.#authority}`);
      // Other 1xx responses come before the final one (RFC 9110 15.2).
      else if (head.status >= 200) this.#open();
    }
  }

  protected onExpired(): void {}

  /** The first bytes from the target may have arrived with the proxy's response. */
  #open(): void {
    const { transport } = this;
    if (this.leave()) this.#waiter.onTunnel(transport.release(this.held.view()), transport);
  }
}
