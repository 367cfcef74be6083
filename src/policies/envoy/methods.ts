/**
 * The gRPC methods of Envoy's v3 API that policies call, with their messages. The messages and the library below them take
 * 2.4 MB of heap and 20 ms of CPU, so this module is only loaded by `import()`, when a policy makes its first call.
 */
import {
  create,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { Authorization } from "../../gen/envoy/service/auth/v3/external_auth_pb.ts";
import { ExternalProcessor } from "../../gen/envoy/service/ext_proc/v3/external_processor_pb.ts";
import { RateLimitService } from "../../gen/envoy/service/ratelimit/v3/rls_pb.ts";

/** A gRPC method: its path and the codecs of its messages. */
interface EnvoyMethod<Request extends DescMessage, Response extends DescMessage> {
  /** `/package.Service/Method`, the `:path` of calls (gRPC over HTTP/2, "Requests"). */
  readonly path: string;
  encode(request: MessageInitShape<Request>): Uint8Array;
  /** Fields that proto/ does not declare are skipped. Throws an Error if the bytes are not a valid message. */
  decode(bytes: Uint8Array): MessageShape<Response>;
}

export const check = methodOf(Authorization.method.check);
export const process = methodOf(ExternalProcessor.method.process);
export const shouldRateLimit = methodOf(RateLimitService.method.shouldRateLimit);

function methodOf<Request extends DescMessage, Response extends DescMessage>(
  method: DescMethod & { readonly input: Request; readonly output: Response },
): EnvoyMethod<Request, Response> {
  const { input, output, name, parent } = method;
  return {
    path: `/${parent.typeName}/${name}`,
    encode: (request) => toBinary(input, create(input, request)),
    decode: (bytes) => fromBinary(output, bytes, { readUnknownFields: false }),
  };
}
