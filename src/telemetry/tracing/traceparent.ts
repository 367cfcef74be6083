import { randomFillSync } from "node:crypto";

/** What `traceparent` says of the caller's span (W3C Trace Context, section 3.2). */
interface TraceParent {
  /** 32 lower-case hexadecimal digits, not all zero. */
  readonly traceId: string;
  /** 16 such digits. */
  readonly spanId: string;
  /** Whether the caller may have recorded its span. */
  readonly sampled: boolean;
}

/** ff is not a version, and no id is all zero; fields may follow. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?![^-])/;
/** Characters of version 00, which has no more fields; later versions may (section 4.3). */
const LENGTH = 55;
/** Where the trace id begins in a valid header. */
export const TRACE_ID_AT = 3;
const TRACE_ID_END = 35;
const SPAN_ID_AT = 36;
const FLAGS_AT = 53;
const SAMPLED = 1;

/** Whether a header is valid, strictly by section 3.2.2. */
export function isTraceparent(text: string): boolean {
  return TRACEPARENT.test(text) && (text.length === LENGTH || !text.startsWith("00"));
}

/** Undefined for an invalid header, in which case a new trace begins. */
export function parseTraceparent(text: string): TraceParent | undefined {
  if (!isTraceparent(text)) return undefined;
  return {
    traceId: text.slice(TRACE_ID_AT, TRACE_ID_END),
    spanId: text.slice(SPAN_ID_AT, FLAGS_AT - 1),
    sampled: (Number.parseInt(text.slice(FLAGS_AT, FLAGS_AT + 2), 16) & SAMPLED) !== 0,
  };
}

/** The header for a callee of a recorded span. */
export function formatTraceparent(traceId: string, spanId: string): string {
  return `00-${traceId}-${spanId}-01`;
}

/** Random bytes for many ids at once: a call for each id costs more than everything else about it. */
const pool = Buffer.alloc(4096);
let used = pool.length;

/** A new id of 16 bytes. */
export function newTraceId(): string {
  return randomHex(16);
}

/** A new id of 8 bytes. */
export function newSpanId(): string {
  return randomHex(8);
}

function randomHex(size: number): string {
  if (used + size > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const id = pool.toString("hex", used, used + size);
  used += size;
  // All zero is not an id.
  return /[^0]/.test(id) ? id : randomHex(size);
}
