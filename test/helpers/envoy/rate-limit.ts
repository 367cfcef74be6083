/** envoy.service.ratelimit.v3: the protocol of rate limit services. */
import { Duration, HeaderValue, UInt64Value } from "./common.ts";
import { type Message, MessageType } from "./wire.ts";

export const SHOULD_RATE_LIMIT = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/** `overall_code` and the `code` of each status. */
export const OVER_LIMIT = 2;

/** envoy.type.v3.RateLimitUnit, and the units of `RateLimitResponse.RateLimit`, by number. */
export const UNITS = {
  second: 1,
  minute: 2,
  hour: 3,
  day: 4,
  month: 5,
  year: 6,
} as const;

export const Entry = new MessageType("envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.Entry", {
  key: [1, "string"],
  value: [2, "string"],
});

export const RateLimitOverride = new MessageType(
  "envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.RateLimitOverride",
  { requests_per_unit: [1, "uint32"], unit: [2, "int32"] },
);

export const RateLimitDescriptor = new MessageType("envoy.extensions.common.ratelimit.v3.RateLimitDescriptor", {
  entries: [1, Entry, "list"],
  limit: [2, RateLimitOverride],
  hits_addend: [3, UInt64Value],
});

export type Descriptor = Message<(typeof RateLimitDescriptor)["fields"]>;

export const RateLimitRequest = new MessageType("envoy.service.ratelimit.v3.RateLimitRequest", {
  domain: [1, "string"],
  descriptors: [2, RateLimitDescriptor, "list"],
  hits_addend: [3, "uint32"],
});

export const RateLimit = new MessageType("envoy.service.ratelimit.v3.RateLimitResponse.RateLimit", {
  requests_per_unit: [1, "uint32"],
  unit: [2, "int32"],
  name: [3, "string"],
});

export const DescriptorStatus = new MessageType("envoy.service.ratelimit.v3.RateLimitResponse.DescriptorStatus", {
  code: [1, "int32"],
  current_limit: [2, RateLimit],
  limit_remaining: [3, "uint32"],
  duration_until_reset: [4, Duration],
});

export const RateLimitResponse = new MessageType("envoy.service.ratelimit.v3.RateLimitResponse", {
  overall_code: [1, "int32"],
  statuses: [2, DescriptorStatus, "list"],
  response_headers_to_add: [3, HeaderValue, "list"],
  request_headers_to_add: [4, HeaderValue, "list"],
  raw_body: [5, "bytes"],
});
