/** The head of a gRPC request (gRPC over HTTP/2, "Requests"). */
import { GatewayError } from "../../base/errors.ts";
import type { HeaderList } from "../../http/message/message.ts";

/** Fields that the protocol owns: what a policy sets under these names does not reach the service. */
const OWN = new Set(["content-type", "user-agent", "grpc-timeout", "grpc-encoding", "grpc-accept-encoding"]);
/** Digits that `grpc-timeout` may have. */
const MAX_TIMEOUT = 99_999_999;

/**
 * The fields of a call besides the pseudo-header fields and `te`. `timeoutMs`: the rest of the deadline; 0 = no deadline. Values of
 * names that end in `-bin` are base64. Throws TG_UPSTREAM_FAILED for what metadata cannot have; the message shows no value, which
 * may be a secret.
 */
export function requestMetadata(headers: HeaderList, timeoutMs: number): HeaderList {
  const metadata = ["content-type", "application/grpc", "user-agent", "tracegate", "grpc-accept-encoding", "identity"];
  if (timeoutMs > 0) metadata.push("grpc-timeout", timeoutText(timeoutMs));
  for (let i = 0; i < headers.length; i += 2) {
    const [name, value] = [headers[i] as string, headers[i + 1] as string];
    if (!/^[0-9a-z_.-]+$/.test(name) || !/^[ -~]*$/.test(value))
      throw new GatewayError("TG_UPSTREAM_FAILED", undefined, new Error(`gRPC cannot carry the header ${name}`));
    if (!OWN.has(name)) metadata.push(name, name.endsWith("-bin") ? unpadded(value) : value);
  }
  return metadata;
}

/** Milliseconds as `TimeoutValue TimeoutUnit`. */
function timeoutText(ms: number): string {
  const whole = Math.ceil(ms);
  return whole <= MAX_TIMEOUT ? `${whole}m` : `${Math.min(MAX_TIMEOUT, Math.ceil(ms / 1000))}S`;
}

/** Base64 as senders should write it: without padding. Invalid text is decoded as far as possible. */
function unpadded(value: string): string {
  return Buffer.from(value, "base64").toString("base64").replace(/=+$/, "");
}
