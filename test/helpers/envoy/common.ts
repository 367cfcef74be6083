/** Messages of Envoy's v3 API that several of its protocols share. */
import { MessageType } from "./wire.ts";

export const HeaderValue = new MessageType("envoy.config.core.v3.HeaderValue", {
  key: [1, "string"],
  value: [2, "string"],
  raw_value: [3, "bytes"],
});

const BoolValue = new MessageType("google.protobuf.BoolValue", { value: [1, "bool"] });

export const HeaderValueOption = new MessageType("envoy.config.core.v3.HeaderValueOption", {
  header: [1, HeaderValue],
  append: [2, BoolValue],
  /** See `HeaderAppendAction`. */
  append_action: [3, "int32"],
});

export const Metadata = new MessageType("envoy.config.core.v3.Metadata", {
  filter_metadata: [1, "struct", "map"],
});

export const HttpStatus = new MessageType("envoy.type.v3.HttpStatus", { code: [1, "int32"] });

export const Duration = new MessageType("google.protobuf.Duration", { seconds: [1, "int64"], nanos: [2, "int32"] });
export const Timestamp = new MessageType("google.protobuf.Timestamp", { seconds: [1, "int64"], nanos: [2, "int32"] });
export const UInt64Value = new MessageType("google.protobuf.UInt64Value", { value: [1, "int64"] });
