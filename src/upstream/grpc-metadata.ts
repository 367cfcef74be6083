import type * as Grpc from "@grpc/grpc-js";
import { GatewayError } from "../base/errors.ts";
import type { HeaderList } from "../http/message.ts";

/**
 * Header fields as metadata: of names that end in `-bin` the values are base64 (the gRPC protocol over HTTP/2, "Custom
 * Metadata"). Throws TG_UPSTREAM_FAILED for what metadata cannot have; the message shows no value, which may be a secret.
 */
export function metadataOf(grpc: typeof Grpc, headers: HeaderList): Grpc.Metadata {
  const metadata = new grpc.Metadata();
  for (let i = 0; i < headers.length; i += 2) {
    const [name, value] = [headers[i] as string, headers[i + 1] as string];
    if (!/^[0-9a-z_.-]+$/.test(name) || !/^[ -~]*$/.test(value))
      throw new GatewayError("TG_UPSTREAM_FAILED", undefined, new Error(`gRPC cannot carry the header ${name}`));
    metadata.add(name, name.endsWith("-bin") ? Buffer.from(value, "base64") : value);
  }
  return metadata;
}
