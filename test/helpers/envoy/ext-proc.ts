/** envoy.service.ext_proc.v3: the protocol of processing services. */
import type { ExtProcOptions } from "../../../src/policies/ext-proc/schema.ts";
import { Duration, HeaderValue, HeaderValueOption, HttpStatus, Metadata } from "./common.ts";
import { type Message, MessageType } from "./wire.ts";

export const PROCESS = "/envoy.service.ext_proc.v3.ExternalProcessor/Process";

/** Options of `extProc` with which the service gets nothing. */
export const NOTHING: ExtProcOptions = {
  requestHeaderMode: "skip",
  responseHeaderMode: "skip",
  requestBodyMode: "none",
  responseBodyMode: "none",
  requestTrailerMode: "skip",
  responseTrailerMode: "skip",
  allowModeOverride: false,
};

/** `ProcessingMode.BodySendMode` */
export const BODY_MODES = { none: 0, streamed: 1, buffered: 2, bufferedPartial: 3, fullDuplexStreamed: 4 } as const;
/** `ProcessingMode.HeaderSendMode`; 0 leaves the mode as it is. */
export const SEND = 1;
export const SKIP = 2;
/** `CommonResponse.ResponseStatus` */
export const CONTINUE_AND_REPLACE = 1;

export const HeaderMap = new MessageType("envoy.config.core.v3.HeaderMap", { headers: [1, HeaderValue, "list"] });

export const HttpHeaders = new MessageType("envoy.service.ext_proc.v3.HttpHeaders", {
  headers: [1, HeaderMap],
  end_of_stream: [3, "bool"],
});

export const HttpBody = new MessageType("envoy.service.ext_proc.v3.HttpBody", {
  body: [1, "bytes"],
  end_of_stream: [2, "bool"],
});

export const HttpTrailers = new MessageType("envoy.service.ext_proc.v3.HttpTrailers", { trailers: [1, HeaderMap] });

export const ProtocolConfiguration = new MessageType("envoy.service.ext_proc.v3.ProtocolConfiguration", {
  request_body_mode: [1, "int32"],
  response_body_mode: [2, "int32"],
});

export const ProcessingRequest = new MessageType("envoy.service.ext_proc.v3.ProcessingRequest", {
  request_headers: [2, HttpHeaders],
  response_headers: [3, HttpHeaders],
  request_body: [4, HttpBody],
  response_body: [5, HttpBody],
  request_trailers: [6, HttpTrailers],
  response_trailers: [7, HttpTrailers],
  metadata_context: [8, Metadata],
  attributes: [9, "struct", "map"],
  protocol_config: [11, ProtocolConfiguration],
});

export const HeaderMutation = new MessageType("envoy.service.ext_proc.v3.HeaderMutation", {
  set_headers: [1, HeaderValueOption, "list"],
  remove_headers: [2, "string", "list"],
});

export const StreamedBodyResponse = new MessageType("envoy.service.ext_proc.v3.StreamedBodyResponse", {
  body: [1, "bytes"],
  end_of_stream: [2, "bool"],
});

export const BodyMutation = new MessageType("envoy.service.ext_proc.v3.BodyMutation", {
  body: [1, "bytes"],
  clear_body: [2, "bool"],
  streamed_response: [3, StreamedBodyResponse],
});

export const CommonResponse = new MessageType("envoy.service.ext_proc.v3.CommonResponse", {
  status: [1, "int32"],
  header_mutation: [2, HeaderMutation],
  body_mutation: [3, BodyMutation],
  clear_route_cache: [5, "bool"],
});

export const HeadersResponse = new MessageType("envoy.service.ext_proc.v3.HeadersResponse", {
  response: [1, CommonResponse],
});
export const BodyResponse = new MessageType("envoy.service.ext_proc.v3.BodyResponse", {
  response: [1, CommonResponse],
});
export const TrailersResponse = new MessageType("envoy.service.ext_proc.v3.TrailersResponse", {
  header_mutation: [1, HeaderMutation],
});

export const GrpcStatus = new MessageType("envoy.service.ext_proc.v3.GrpcStatus", { status: [1, "uint32"] });

export const ImmediateResponse = new MessageType("envoy.service.ext_proc.v3.ImmediateResponse", {
  status: [1, HttpStatus],
  headers: [2, HeaderMutation],
  body: [3, "bytes"],
  grpc_status: [4, GrpcStatus],
  details: [5, "string"],
});

export const ProcessingMode = new MessageType("envoy.extensions.filters.http.ext_proc.v3.ProcessingMode", {
  request_header_mode: [1, "int32"],
  response_header_mode: [2, "int32"],
  request_body_mode: [3, "int32"],
  response_body_mode: [4, "int32"],
  request_trailer_mode: [5, "int32"],
  response_trailer_mode: [6, "int32"],
});

export const ProcessingResponse = new MessageType("envoy.service.ext_proc.v3.ProcessingResponse", {
  request_headers: [1, HeadersResponse],
  response_headers: [2, HeadersResponse],
  request_body: [3, BodyResponse],
  response_body: [4, BodyResponse],
  request_trailers: [5, TrailersResponse],
  response_trailers: [6, TrailersResponse],
  immediate_response: [7, ImmediateResponse],
  dynamic_metadata: [8, "struct"],
  mode_override: [9, ProcessingMode],
  override_message_timeout: [10, Duration],
});

export type Question = Message<(typeof ProcessingRequest)["fields"]>;
export type Answer = Message<(typeof ProcessingResponse)["fields"]>;
export type Mode = Message<(typeof ProcessingMode)["fields"]>;
