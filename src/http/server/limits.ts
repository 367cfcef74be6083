/** The limits of a client's connection (reference 1.10), with every default filled in. Times are milliseconds, sizes bytes. */
export interface ConnectionLimits {
  /** Bytes of request line and header fields together. Default 61440. */
  readonly maxHeadSize: number;
  /** Default 100. */
  readonly maxHeaders: number;
  /** Bytes of the request target. Default 8192 (more: 414). */
  readonly maxTargetSize: number;
  /** Largest request body, 0 = unlimited (default). More: 413. */
  readonly maxRequestBodySize: number;
  /** A keep-alive connection without a request is closed after this. Default 600000. */
  readonly idleTimeout: number;
  /** From the first byte of a head to its end. Default 60000 (never above idleTimeout). Late: 408. */
  readonly headerReadTimeout: number;
  /** A body, in either direction, that makes no progress for this long ends the exchange. Default 300000. */
  readonly streamIdleTimeout: number;
  /** Bytes per second that a request body must average after a grace of 10 s. Default 240; 0 = off. */
  readonly minBodyRate: number;
  /** Graceful close after this age; 0 = off (default). */
  readonly maxConnectionDuration: number;
  readonly headerCase: "lowercase" | "preserve";
  /** How request fields with `_` in their names are handled. Absent: `allow`. */
  readonly underscores?: "allow" | "drop" | "reject";
}
