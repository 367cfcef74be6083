import { createHmac } from "node:crypto";

/** A request as it arrived, by which changes of the configuration are judged. */
export interface SampledRequest {
  /** ISO 8601. */
  readonly time: string;
  /** How many requests it stands for, itself included. */
  readonly weight: number;
  /** The key of the bind at which it arrived. */
  readonly bind: string;
  readonly scheme: "http" | "https";
  readonly version: "1.0" | "1.1" | "2";
  readonly method: string;
  readonly authority: string;
  /** Path and query as they were sent; a value with a secret name is redacted. */
  readonly target: string;
  /** In their order. */
  readonly headers: readonly SampledField[];
  /** Bytes of the body that the head announces; `unknown`: a body of any length follows, such as a chunked one. Absent: no body. */
  readonly contentLength?: number | "unknown";
  /** The protocols that the client offers to switch to, such as `websocket`; in HTTP/2, by extended CONNECT (RFC 8441). */
  readonly upgrade?: string;
  /** Of the client; only if `config.recorder.clientAddress` is set. */
  readonly source?: { readonly address: string; readonly port: number } | undefined;
  /** The server name of the TLS handshake. */
  readonly serverName?: string;
}

/** A header field. A secret value is known by its keyed digest only: it can be compared with another value, not read. */
export type SampledField =
  | { readonly name: string; readonly value: string }
  | { readonly name: string; readonly digest: string };

/** Bytes of a digest: enough that two values never have the same one by chance. */
const DIGEST = 16;

/** The digest of a field's value, latin1. `key`: of this run of the gateway, so that nobody else can try values. */
export function digestOf(key: Uint8Array, name: string, value: string): string {
  const hmac = createHmac("sha256", key).update(`${name}\0`).update(value, "latin1");
  return hmac.digest().subarray(0, DIGEST).toString("base64url");
}
