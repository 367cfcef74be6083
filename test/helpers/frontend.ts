import type { Frontend } from "../../src/ir/ir.ts";

/** The limits of a bind without `frontendPolicies`, for tests that make connections without a configuration; small buffers and few connections. */
export const FRONTEND: Frontend = {
  maxBufferSize: 1024,
  maxHeadSize: 61_440,
  maxHeaders: 100,
  maxTargetSize: 8192,
  maxRequestBodySize: 0,
  idleTimeout: 600_000,
  headerReadTimeout: 60_000,
  streamIdleTimeout: 300_000,
  minBodyRate: 240,
  maxConnections: 10,
  maxConnectionDuration: 0,
  headerCase: "lowercase",
  keepalives: { enabled: false, time: 0 },
};
