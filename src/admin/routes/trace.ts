import { parseDuration } from "../../base/durations.ts";
import { isTraceToken } from "../../trace/token.ts";
import { AdminBadRequest, AdminForbidden, type TraceOptions } from "../plane/plane.ts";
import { SseReader } from "../server/sse-reader.ts";
import type { AdminCall, AdminRoute } from "./route.ts";

/** Bytes of each body that a trace shows, by default and at most (docs/trace.md#the-stream). */
const DEFAULT_TRACE_BODIES = 2 * 1024 * 1024;
const SIZE = /^(\d{1,9})(|B|KiB|MiB)$/;
const UNITS: Readonly<Record<string, number>> = { "": 1, B: 1, KiB: 1024, MiB: 1024 * 1024 };
const MAX_EXPRESSION = 4096;
const MAX_DURATION_MS = 24 * 3_600_000;

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
      return {
        stream: async (response) => {
          const reader = new SseReader(response);
          const stop = (): void => reader.end();
          call.signal.addEventListener("abort", stop, { once: true });
          try {
            await run(call, options, reader);
          } finally {
            call.signal.removeEventListener("abort", stop);
          }
        },
      };
    },
  },
];

/** Resolves when the stream has ended, on whichever side. */
async function run({ plane, signal }: AdminCall, options: TraceOptions, reader: SseReader): Promise<void> {
  const trace = await plane.openTrace(options, reader);
  try {
    signal.throwIfAborted();
    reader.start();
    await reader.ended;
  } finally {
    trace.close();
  }
}

function traceOptions(query: URLSearchParams): TraceOptions {
  const expression = query.get("expression") ?? "";
  if (expression.length > MAX_EXPRESSION)
    throw new AdminBadRequest(`invalid expression: longer than ${MAX_EXPRESSION} characters`);
  const token = query.get("token");
  if (token !== null && !isTraceToken(token))
    throw new AdminBadRequest("invalid token: expected 22 to 128 letters, digits, - and _, chosen at random");
  return {
    reveal: flag(query, "reveal"),
    maxBodyBytes: size(query, "bodies", DEFAULT_TRACE_BODIES),
    ...duration(query),
    ...(expression !== "" && { expression }),
    ...(token !== null && { token }),
  };
}

function flag(query: URLSearchParams, name: string): boolean {
  const text = query.get(name) ?? "false";
  if (text === "true" || text === "false") return text === "true";
  throw new AdminBadRequest(`invalid ${name} ${JSON.stringify(text)}: expected true or false`);
}

function size(query: URLSearchParams, name: string, most: number): number {
  const text = query.get(name);
  if (text === null) return most;
  const match = SIZE.exec(text);
  const bytes = match === null ? Number.NaN : Number(match[1]) * (UNITS[match[2] ?? ""] ?? Number.NaN);
  if (bytes <= most) return bytes;
  throw new AdminBadRequest(
    `invalid ${name} ${JSON.stringify(text)}: expected bytes or a size such as 4KiB, at most 2MiB`,
  );
}

function duration(query: URLSearchParams): { readonly maxMs?: number } {
  const text = query.get("duration");
  if (text === null) return {};
  const maxMs = parseDuration(text);
  if (maxMs === undefined || maxMs < 1 || maxMs > MAX_DURATION_MS)
    throw new AdminBadRequest(`invalid duration ${JSON.stringify(text)}: expected a duration such as 30s, at most 24h`);
  return { maxMs };
}
