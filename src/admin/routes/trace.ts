import { parseDuration } from "../../base/durations.ts";
import { isTraceToken } from "../../trace/token.ts";
import {
  AdminBadRequest,
  AdminForbidden,
  type FollowOptions,
  type TraceHandle,
  type TraceOptions,
} from "../plane/plane.ts";
import type { Reply } from "../server/reply.ts";
import { SseReader } from "../server/sse-reader.ts";
import type { AdminCall, AdminRoute } from "./route.ts";

/** Bytes of each body that a trace shows, by default and at most (docs/trace.md#the-stream). */
const DEFAULT_TRACE_BODIES = 2 * 1024 * 1024;
const SIZE = /^(\d{1,9})(|B|KiB|MiB)$/;
const UNITS: Readonly<Record<string, number>> = { "": 1, B: 1, KiB: 1024, MiB: 1024 * 1024 };
const MAX_EXPRESSION = 4096;
const MAX_DURATION_MS = 24 * 3_600_000;
/** Every follow stream ends by count and by time: nobody can leave one running by mistake. */
const FOLLOW_COUNT = 20;
const MAX_FOLLOW_COUNT = 1_000_000;
const FOLLOW_MS = 30_000;
const MAX_FOLLOW_MS = 3_600_000;
/** Bytes of each body; bodies of many requests are many bytes. */
const MAX_FOLLOW_BODIES = 64 * 1024;

export const traceRoutes: readonly AdminRoute[] = [
  {
    path: "/debug/trace",
    // The contract does not name the method: the reference's client sends POST, EventSource and browsers send GET.
    methods: ["GET", "POST"],
    parameters: ["expression", "reveal", "bodies", "token", "duration"],
    summary:
      "events of the next request (server-sent); expression=<CEL>, token=<text>, reveal=true, bodies=<number of bytes, or 4KiB; 0 for none>, duration=<30s, ends the trace even if the request continues>",
    handle: (call) => {
      const options = traceOptions(call.query);
      if (options.reveal && !call.plane.permits.reveal)
        throw new AdminForbidden("config.admin.reveal does not allow revealing secrets; trace without reveal");
      return streamOf(call, (reader) => call.plane.openTrace(options, reader));
    },
  },
  {
    path: "/debug/follow",
    methods: ["GET", "POST"],
    parameters: ["expression", "where", "count", "for", "bodies", "candidates"],
    summary:
      "events of many requests (server-sent); expression=<CEL>, where=<CEL over what became of them>, count=<20>, for=<30s>, bodies=<0>, candidates=true",
    handle: (call) => {
      const options = followOptions(call.query);
      return streamOf(call, (reader) => call.plane.openFollow(options, reader));
    },
  },
];

/** A stream of server-sent events, which `open` feeds; over when it has ended on whichever side. */
function streamOf({ signal }: AdminCall, open: (reader: SseReader) => Promise<TraceHandle>): Reply {
  return {
    stream: async (response) => {
      const reader = new SseReader(response);
      const stop = (): void => reader.end();
      signal.addEventListener("abort", stop, { once: true });
      try {
        const trace = await open(reader);
        try {
          signal.throwIfAborted();
          reader.start();
          await reader.ended;
        } finally {
          trace.close();
        }
      } finally {
        signal.removeEventListener("abort", stop);
      }
    },
  };
}

function followOptions(query: URLSearchParams): FollowOptions {
  const expression = celText(query, "expression");
  const where = celText(query, "where");
  return {
    count: countOf(query.get("count")),
    forMs: duration(query, "for", MAX_FOLLOW_MS, "1h") ?? FOLLOW_MS,
    maxBodyBytes: size(query, "bodies", MAX_FOLLOW_BODIES, 0),
    candidates: flag(query, "candidates"),
    ...(expression !== "" && { expression }),
    ...(where !== "" && { where }),
  };
}

function celText(query: URLSearchParams, name: string): string {
  const text = query.get(name) ?? "";
  if (text.length <= MAX_EXPRESSION) return text;
  throw new AdminBadRequest(`invalid ${name}: longer than ${MAX_EXPRESSION} characters`);
}

function countOf(text: string | null): number {
  const count = Number(text ?? FOLLOW_COUNT);
  if (Number.isInteger(count) && count >= 1 && count <= MAX_FOLLOW_COUNT) return count;
  throw new AdminBadRequest(`invalid count ${JSON.stringify(text)}: expected a number from 1 to ${MAX_FOLLOW_COUNT}`);
}

function traceOptions(query: URLSearchParams): TraceOptions {
  const expression = celText(query, "expression");
  const token = query.get("token");
  if (token !== null && !isTraceToken(token))
    throw new AdminBadRequest("invalid token: expected 22 to 128 letters, digits, - and _, chosen at random");
  const maxMs = duration(query, "duration", MAX_DURATION_MS, "24h");
  return {
    reveal: flag(query, "reveal"),
    maxBodyBytes: size(query, "bodies", DEFAULT_TRACE_BODIES, DEFAULT_TRACE_BODIES),
    ...(maxMs !== undefined && { maxMs }),
    ...(expression !== "" && { expression }),
    ...(token !== null && { token }),
  };
}

function flag(query: URLSearchParams, name: string): boolean {
  const text = query.get(name) ?? "false";
  if (text === "true" || text === "false") return text === "true";
  throw new AdminBadRequest(`invalid ${name} ${JSON.stringify(text)}: expected true or false`);
}

function size(query: URLSearchParams, name: string, most: number, usual: number): number {
  const text = query.get(name);
  if (text === null) return usual;
  const match = SIZE.exec(text);
  const bytes = match === null ? Number.NaN : Number(match[1]) * (UNITS[match[2] ?? ""] ?? Number.NaN);
  if (bytes <= most) return bytes;
  throw new AdminBadRequest(
    `invalid ${name} ${JSON.stringify(text)}: expected bytes or a size such as 4KiB, at most ${most === DEFAULT_TRACE_BODIES ? "2MiB" : "64KiB"}`,
  );
}

/** Milliseconds; undefined: not given. `most` with its text. */
function duration(query: URLSearchParams, name: string, most: number, mostText: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const ms = parseDuration(text);
  if (ms !== undefined && ms >= 1 && ms <= most) return ms;
  throw new AdminBadRequest(
    `invalid ${name} ${JSON.stringify(text)}: expected a duration such as 30s, at most ${mostText}`,
  );
}
