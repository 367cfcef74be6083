/** envoy.service.auth.v3: the protocol of authorization services. */
import { HeaderValueOption, HttpStatus, Metadata, Timestamp } from "./common.ts";
import { type Message, MessageType } from "./wire.ts";

export const CHECK = "/envoy.service.auth.v3.Authorization/Check";

export const SocketAddress = new MessageType("envoy.config.core.v3.SocketAddress", {
  address: [2, "string"],
  port_value: [3, "uint32"],
});

export const Address = new MessageType("envoy.config.core.v3.Address", { socket_address: [1, SocketAddress] });

export const Peer = new MessageType("envoy.service.auth.v3.AttributeContext.Peer", {
  address: [1, Address],
  principal: [4, "string"],
});

export const HttpRequestAttributes = new MessageType("envoy.service.auth.v3.AttributeContext.HttpRequest", {
  id: [1, "string"],
  method: [2, "string"],
  headers: [3, "string", "map"],
  path: [4, "string"],
  host: [5, "string"],
  scheme: [6, "string"],
  /** Bytes of the body; -1 = not known. */
  size: [9, "int64"],
  protocol: [10, "string"],
  body: [11, "string"],
  raw_body: [12, "bytes"],
});

export const RequestAttributes = new MessageType("envoy.service.auth.v3.AttributeContext.Request", {
  time: [1, Timestamp],
  http: [2, HttpRequestAttributes],
});

export const AttributeContext = new MessageType("envoy.service.auth.v3.AttributeContext", {
  source: [1, Peer],
  destination: [2, Peer],
  request: [4, RequestAttributes],
  context_extensions: [10, "string", "map"],
  metadata_context: [11, Metadata],
});

export const CheckRequest = new MessageType("envoy.service.auth.v3.CheckRequest", {
  attributes: [1, AttributeContext],
});

const Status = new MessageType("google.rpc.Status", { code: [1, "int32"], message: [2, "string"] });

export const DeniedHttpResponse = new MessageType("envoy.service.auth.v3.DeniedHttpResponse", {
  status: [1, HttpStatus],
  headers: [2, HeaderValueOption, "list"],
  body: [3, "string"],
});

export const OkHttpResponse = new MessageType("envoy.service.auth.v3.OkHttpResponse", {
  headers: [2, HeaderValueOption, "list"],
  headers_to_remove: [5, "string", "list"],
  response_headers_to_add: [6, HeaderValueOption, "list"],
});

export const CheckResponse = new MessageType("envoy.service.auth.v3.CheckResponse", {
  /** Code 0 = allowed. */
  status: [1, Status],
  denied_response: [2, DeniedHttpResponse],
  ok_response: [3, OkHttpResponse],
  dynamic_metadata: [4, "struct"],
});

export type CheckAnswer = Message<(typeof CheckResponse)["fields"]>;
