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

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const NO_TRACE = "0".repeat(32);
const NO_SPAN = "0".repeat(16);
const SAMPLED = 1;

/** Parses strictly by section 3.2.2; undefined for anything else, in which case a new trace begins. */
export function parseTraceparent(text: string): TraceParent | undefined {
  const match = TRACEPARENT.exec(text);
  if (match === null) return undefined;
  const [, version = "", traceId = "", spanId = "", flags = "", rest] = match;
  // Version 00 has no more fields, later ones may; ff is not a version (section 4.3).
  if (version === "ff" || (version === "00" && rest !== undefined)) return undefined;
  if (traceId === NO_TRACE || spanId === NO_SPAN) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0 };
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
