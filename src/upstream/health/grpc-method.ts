/**
 * The method of gRPC's health checking protocol. The messages and the library below them take 2.4 MB of heap, so this module is
 * only loaded by `import()`, for the first probe by gRPC.
 */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  Health,
  HealthCheckRequestSchema,
  type HealthCheckResponse,
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatusSchema as ServingStatus,
} from "../../gen/grpc/health/v1/health_pb.ts";

export const check = {
  /** `/package.Service/Method`. */
  path: `/${Health.typeName}/${Health.method.check.name}`,
  encode: (service: string): Uint8Array =>
    toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service })),
  /** The name of the status. Throws an Error if the bytes are not a valid message. */
  decode(bytes: Uint8Array): string {
    const { status } = responseIn(bytes);
    return ServingStatus.value[status]?.name ?? `in the unknown state ${status}`;
  },
};

function responseIn(bytes: Uint8Array): HealthCheckResponse {
  try {
    return fromBinary(HealthCheckResponseSchema, bytes, { readUnknownFields: false });
  } catch {
    // The library says which byte it did not expect.
    throw new Error("invalid response: it is not a HealthCheckResponse");
  }
}
