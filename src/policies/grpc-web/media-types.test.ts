import assert from "node:assert/strict";
import { test } from "node:test";
import { grpcTypeOf, webCallOf, webTypeOf } from "./media-types.ts";

/** Content types of the request to the backend and of the response to the client; undefined for other requests. */
function types(contentType: string, accept?: string, method = "POST"): string[] | undefined {
  const headers = ["content-type", contentType, ...(accept === undefined ? [] : ["accept", accept])];
  const call = webCallOf({ method, headers });
  if (call === undefined) return undefined;
  return [call.textRequest ? "text" : "binary", grpcTypeOf(call), webTypeOf(call, "application/grpc+proto")];
}

test("both forms become gRPC of the same format, and the response has the form that the client accepts", () => {
  const binary = "application/grpc-web+proto";
  const text = "application/grpc-web-text+proto";
  assert.deepEqual(types("application/grpc-web"), ["binary", "application/grpc", binary]);
  assert.deepEqual(types("application/grpc-web+json"), ["binary", "application/grpc+json", binary]);
  assert.deepEqual(types("Application/gRPC-Web-Text+Proto"), ["text", "application/grpc+proto", text]);
  assert.deepEqual(types("application/grpc-web-text; charset=utf-8"), ["text", "application/grpc", text]);
  assert.deepEqual(types("application/grpc-web-text", "*/*"), ["text", "application/grpc", text]);
  assert.deepEqual(types("application/grpc-web-text", "application/grpc-web"), ["text", "application/grpc", binary]);
  assert.deepEqual(types("application/grpc-web", "application/grpc-web-text"), ["binary", "application/grpc", text]);
});

test("requests of other types and methods are not calls", () => {
  for (const type of ["", "application/grpc", "application/grpc-webs", "application/grpc-web-texts", "text/plain"])
    assert.equal(types(type), undefined, type);
  assert.equal(types("application/grpc-web", undefined, "OPTIONS"), undefined);
});
