import { messageOf } from "../base/errors.ts";
import type { Addresses } from "../net/addresses.ts";
import { ByteQueue } from "../net/byte-queue.ts";
import { latin1Slice } from "../net/node-internals.ts";
import type { ByteStream, ConnectHandler, Transport } from "../net/transport.ts";
import { findHeadEnd } from "./h1/head-end.ts";
import { parseResponseHead, ResponseHead } from "./h1/parse-head.ts";

const LIMITS = { maxHeaders: 100, maxTargetSize: 0 };
const MAX_HEAD = 16 * 1024;

/** Who waits for a tunnel; exactly one call. */
export interface TunnelWaiter {
  /** Bytes of `stream` go to the target and come from there; `from` are the addresses of the connection to the proxy. */
  onTunnel(stream: ByteStream, from: Addresses): void;
  onTunnelFailure(error: Error): void;
}

/** Asks an HTTP proxy for a connection to somewhere else (RFC 9110 9.3.6), on a connection that was made to be given away. */
export class ProxyTunnel implements ConnectHandler {
  readonly #authority: string;
  readonly #authorization: string | undefined;
  readonly #waiter: TunnelWaiter;
  readonly #held = new ByteQueue();
  #transport: Transport | undefined;
  #closed = false;

  /** `authority`: `host:port` to connect to; `authorization`: value of Proxy-Authorization. */
  constructor(authority: string, authorization: string | undefined, waiter: TunnelWaiter) {
    this.#authority = authority;
    this.#authorization = authorization;
    this.#waiter = waiter;
  }

  onConnect(transport: Transport): void {
    this.#transport = transport;
    const authority = this.#authority;
    const credentials = this.#authorization === undefined ? "" : `proxy-authorization: ${this.#authorization}\r\n`;
    transport.writeText(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n${credentials}\r\n`);
  }

  onData(buffer: Buffer, length: number): void {
    const held = this.#held;
    held.append(buffer, 0, length);
    while (!this.#closed) {
      const headEnd = findHeadEnd(held.bytes, held.start, held.end);
      if (headEnd === -1) {
        if (held.length > MAX_HEAD) this.#fail("the head of the proxy's answer is too large");
        return;
      }
      const head = new ResponseHead();
      const error = parseResponseHead(latin1Slice(held.bytes, held.start, headEnd), LIMITS, head, false);
      held.consume(headEnd);
      if (error !== undefined) this.#fail(`the proxy's answer is invalid: ${error.detail}`);
      else if (head.status >= 300 || head.status === 101)
        this.#fail(`the proxy answered ${head.status} to CONNECT ${this.#authority}`);
      else if (head.status >= 200) this.#open();
    }
  }

  onEnd(): void {
    this.#fail("the proxy closed the connection instead of opening a tunnel");
  }

  onDrain(): void {}

  onClose(error: Error | undefined): void {
    this.#fail(error?.message ?? "the proxy closed the connection instead of opening a tunnel");
  }

  onFault(error: unknown): void {
    this.#fail(messageOf(error));
  }

  /** A tunnel may begin with bytes of its target: they came with the answer. */
  #open(): void {
    const transport = this.#transport as Transport;
    const { bytes, start, end } = this.#held;
    this.#closed = true;
    this.#waiter.onTunnel(transport.release(bytes.subarray(start, end)), transport);
  }

  #fail(message: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#transport?.destroy();
    this.#waiter.onTunnelFailure(new Error(message));
  }
}
