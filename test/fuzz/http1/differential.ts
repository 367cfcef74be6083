/**
 * The rule that is fuzzed: every request that the gateway accepts, Node's strict parser reads as the same request. If it
 * did not, a client could hide a request from the gateway's policies inside of another one.
 */
import { METHODS } from "node:http";
import { isDeepStrictEqual } from "node:util";
import { type Message, readWithGateway } from "./message.ts";
import { readWithNode } from "./node-parser.ts";

const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS);

export interface Disagreement {
  /** Index of the request in the stream. */
  readonly index: number;
  readonly gateway: Message;
  /** Undefined when Node refuses the request or does not see it. */
  readonly node: Message | undefined;
}

/** Compares what both read from `stream`; also returns how many requests the gateway accepted. */
export function compare(stream: Buffer): {
  readonly accepted: number;
  readonly disagreement: Disagreement | undefined;
} {
  const gateway = readWithGateway(stream);
  const node = gateway.length === 0 ? [] : readWithNode(stream);
  for (const [index, message] of gateway.entries()) {
    // Node refuses methods that it does not know; a gateway passes on any token (RFC 9110 9.1).
    if (!KNOWN_METHODS.has(message.method)) break;
    if (!isDeepStrictEqual(message, node[index])) {
      return { accepted: gateway.length, disagreement: { index, gateway: message, node: node[index] } };
    }
  }
  return { accepted: gateway.length, disagreement: undefined };
}
