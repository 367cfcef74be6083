/** Fields that have another value in each request. */
export const CHANGING_FIELDS: ReadonlySet<string> = new Set(["x-request-id", "traceparent", "cdn-loop", "date"]);
