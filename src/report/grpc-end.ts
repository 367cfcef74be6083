import { type Fields, fieldsOf } from "../base/fields.ts";
import { grpcEndText } from "../base/grpc-codes.ts";

/** How the gRPC call of a `requestFinished` ended: `grpc-status 14 (UNAVAILABLE)`. Undefined if the request was not a gRPC call. */
export function grpcEndOf(message: Fields): { readonly text: string; readonly failed: boolean } | undefined {
  if (message.grpc === undefined) return undefined;
  const { status } = fieldsOf(message.grpc);
  const known = typeof status === "number" ? status : undefined;
  return { text: grpcEndText(known), failed: known !== 0 };
}
