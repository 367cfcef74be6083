/**
 * Opening handshakes of WebSocket. Inside the gateway they have the form of HTTP/1.1 (RFC 6455 4): a GET whose upgrade is
 * `websocket`, with a key, and a 101 that proves that the key was read. HTTP/2 has CONNECT with `:protocol` and a 200 instead,
 * without a key (RFC 8441 5): the client's side of a gateway generates one and drops the proof, the upstream's side drops the key
 * and makes the proof.
 */
import { createHash, randomBytes } from "node:crypto";
import type { Latin1 } from "./message/message.ts";

export const KEY_FIELD = "sec-websocket-key";
export const ACCEPT_FIELD = "sec-websocket-accept";
/** RFC 6455 1.3. */
const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** The value of Upgrade and of `:protocol`, in any case. */
export function isWebSocket(protocol: string): boolean {
  return protocol.toLowerCase() === "websocket";
}

/** A key for a request that has come without one. */
export function webSocketKey(): Latin1 {
  return randomBytes(16).toString("base64") as Latin1;
}

/** Proves that `key` was read: the value of Sec-WebSocket-Accept (RFC 6455 4.2.2). */
export function webSocketAccept(key: string): Latin1 {
  return createHash("sha1")
    .update(key.trim() + GUID, "latin1")
    .digest("base64") as Latin1;
}
