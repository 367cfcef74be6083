/** What services that policies call respond, as it is assumed: messages of Envoy's API, and responses over HTTP. */
import { create, fromBinary, type JsonObject, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { CheckResponseSchema } from "../gen/envoy/service/auth/v3/external_auth_pb.ts";
import {
  type ProcessingRequest,
  ProcessingRequestSchema,
  ProcessingResponseSchema,
} from "../gen/envoy/service/ext_proc/v3/external_processor_pb.ts";
import { RateLimitResponseSchema } from "../gen/envoy/service/ratelimit/v3/rls_pb.ts";
import type { StatusCode } from "../gen/envoy/type/v3/http_status_pb.ts";
import type { Latin1 } from "../http/message/message.ts";
import type { GrpcStream, GrpcStreamEvents } from "../upstream/callouts/grpc-call.ts";
import type { CalloutResponse } from "../upstream/callouts/http-call.ts";
import type { AssumedResponse, Assumptions } from "./assumptions.ts";

type Values<Name extends keyof Assumptions> = NonNullable<Assumptions[Name]>;

/** PERMISSION_DENIED of google.rpc.Code. */
const DENIED = 7;
/** BodySendMode of Envoy: the service sends back the body piece by piece. */
const FULL_DUPLEX = 4;

/** The response of an authorization service over HTTP. */
export function authzHttp(assumed: Values<"extAuthz" | "networkExtAuthz">): CalloutResponse {
  if (typeof assumed === "string") return httpOf({ status: assumed === "deny" ? 403 : 200 });
  return httpOf(assumed);
}

/** A response over HTTP. */
export function httpOf({ status = 200, headers = {}, body = "" }: AssumedResponse): CalloutResponse {
  return { status, headers: Object.entries(headers).flat() as Latin1[], body: Buffer.from(body) };
}

/** `CheckResponse` of an authorization service over gRPC. */
export function authzMessage(assumed: Values<"extAuthz" | "networkExtAuthz">): Uint8Array {
  if (typeof assumed === "string") return checkBytes({ status: { code: assumed === "deny" ? DENIED : 0 } });
  const { status = 200, headers = {}, body = "", metadata } = assumed;
  const added = headerOptions(headers);
  return checkBytes({
    status: { code: status < 300 ? 0 : DENIED },
    httpResponse:
      status < 300
        ? { case: "okResponse", value: { headers: added } }
        : { case: "deniedResponse", value: { status: { code: status as StatusCode }, headers: added, body } },
    ...(metadata !== undefined && { dynamicMetadata: metadata as JsonObject }),
  });
}

function checkBytes(message: MessageInitShape<typeof CheckResponseSchema>): Uint8Array {
  return toBinary(CheckResponseSchema, create(CheckResponseSchema, message));
}

/** `RateLimitResponse`: OK, or OVER_LIMIT. */
export function rateLimitMessage(assumed: Values<"remoteRateLimit">): Uint8Array {
  const overallCode = assumed === "over" ? 2 : 1;
  return toBinary(RateLimitResponseSchema, create(RateLimitResponseSchema, { overallCode }));
}

/**
 * A processing service that changes nothing, sets header fields and metadata of the request, or responds to the client itself. It responds
 * to each message as it arrives.
 */
export class AssumedProcessor implements GrpcStream {
  readonly #assumed: AssumedResponse | "allow";
  readonly #events: GrpcStreamEvents;
  /** The directions whose body comes in pieces, which the service sends back. */
  readonly #duplex = { request: true, response: true };
  #ended = false;

  constructor(assumed: AssumedResponse | "allow", events: GrpcStreamEvents) {
    this.#assumed = assumed;
    this.#events = events;
  }

  write(message: Uint8Array): boolean {
    const question = fromBinary(ProcessingRequestSchema, message);
    // After the caller has noted that the message is sent, as over a network.
    setImmediate(() => {
      if (!this.#ended) this.#events.onMessage(this.#answerTo(question));
    });
    return true;
  }

  end(): void {}

  cancel(): void {
    this.#ended = true;
  }

  pause(): void {}

  resume(): void {}

  #answerTo({ request, protocolConfig }: ProcessingRequest): Uint8Array {
    if (protocolConfig !== undefined) {
      this.#duplex.request = protocolConfig.requestBodyMode === FULL_DUPLEX;
      this.#duplex.response = protocolConfig.responseBodyMode === FULL_DUPLEX;
    }
    switch (request.case) {
      case "requestHeaders":
        return responseBytes(this.#aboutRequest());
      case "requestBody":
      case "responseBody": {
        const { body, endOfStream } = request.value;
        const echo = {
          bodyMutation: { mutation: { case: "streamedResponse", value: { body, endOfStream } } },
        } as const;
        const duplex = this.#duplex[request.case === "requestBody" ? "request" : "response"];
        return responseBytes({ response: { case: request.case, value: duplex ? { response: echo } : {} } });
      }
      case undefined:
        return responseBytes({});
      default:
        return responseBytes({ response: { case: request.case, value: {} } });
    }
  }

  #aboutRequest(): MessageInitShape<typeof ProcessingResponseSchema> {
    if (this.#assumed === "allow") return { response: { case: "requestHeaders", value: {} } };
    const { status = 200, headers = {}, body = "", metadata } = this.#assumed;
    const headerMutation = { setHeaders: headerOptions(headers) };
    if (status >= 300)
      return {
        response: {
          case: "immediateResponse",
          value: { status: { code: status as StatusCode }, headers: headerMutation, body: Buffer.from(body) },
        },
      };
    return {
      response: { case: "requestHeaders", value: { response: { headerMutation } } },
      ...(metadata !== undefined && { dynamicMetadata: metadata as JsonObject }),
    };
  }
}

function responseBytes(message: MessageInitShape<typeof ProcessingResponseSchema>): Uint8Array {
  return toBinary(ProcessingResponseSchema, create(ProcessingResponseSchema, message));
}

function headerOptions(headers: NonNullable<AssumedResponse["headers"]>) {
  return Object.entries(headers).map(([key, value]) => ({ header: { key, value, rawValue: Buffer.from(value) } }));
}
