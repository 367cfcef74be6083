/**
 * The methods of RFC 9110, and PATCH (RFC 5789). Telemetry replaces others, which clients may invent, because backends of metrics and spans
 * keep a series for each.
 */
export const KNOWN_METHODS: ReadonlySet<string> = new Set([
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "DELETE",
  "CONNECT",
  "OPTIONS",
  "TRACE",
  "PATCH",
]);
