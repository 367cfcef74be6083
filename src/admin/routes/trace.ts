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
import { duration, expressionText, flag, integer, size } from "./parameters.ts";
import type { AdminCall, AdminRoute } from "./route.ts";

/** What a trace shows of each body, by default and at most (docs/trace.md#the-stream). */
const MAX_TRACE_BODIES = "2MiB";
const MAX_DURATION = "24h";
/** A follow stream ends after this many requests or this long, by default and at most. */
const FOLLOW_COUNT = 20;
const MAX_FOLLOW_COUNT = 1_000_000;
const FOLLOW_MS = 30_000;
const MAX_FOLLOW_TIME = "1h";
/** Less than a trace shows: a stream has the bodies of many requests. */
const MAX_FOLLOW_BODIES = "64KiB";

export const traceRoutes: readonly AdminRoute[] = [
  {
    path: "/debug/trace",
    // The contract does not name the method: the reference's client sends POST, EventSource and browsers send GET.
    methods: ["GET", "POST"],
    onlyReads: true,
    parameters: ["expression", "route", "reveal", "bodies", "token", "duration"],
    summary:
      "events of the next request (server-sent); expression=<CEL>, route=<name>, token=<text>, reveal=true, bodies=<number of bytes, or 4KiB; 0 for none>, duration=<30s, ends the trace even if the request continues>",
    handle: (call) => {
      const options = traceOptions(call.query);
      if (options.reveal && call.headers.origin !== undefined)
        throw new AdminForbidden("web pages may not reveal secrets; trace without reveal, or with tgctl");
      if (options.reveal && !call.plane.permits.reveal)
        throw new AdminForbidden("config.admin.reveal does not allow revealing secrets; trace without reveal");
      return streamOf(call, (reader) => call.plane.openTrace(options, reader));
    },
  },
  {
    path: "/debug/follow",
    methods: ["GET", "POST"],
    onlyReads: true,
    parameters: ["expression", "where", "count", "for", "bodies", "candidates"],
    summary:
      "events of many requests (server-sent); expression=<CEL>, where=<CEL over their outcomes>, count=<20>, for=<30s>, bodies=<0>, candidates=true; with the header Last-Event-ID, goes on after that event",
    handle: (call) => {
      const { plane, headers } = call;
      const lastEventId = String(headers["last-event-id"] ?? "");
      const options = followOptions(call.query);
      return streamOf(call, async (reader) =>
        lastEventId === "" ? plane.openFollow(options, reader) : plane.resumeFollow(lastEventId, reader),
      );
    },
  },
];

/** A stream of server-sent events, which `open` feeds. It ends when either side ends it. */
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
  const expression = expressionText(query, "expression");
  const where = expressionText(query, "where");
  return {
    count: integer(query, "count", FOLLOW_COUNT, MAX_FOLLOW_COUNT),
    forMs: duration(query, "for", MAX_FOLLOW_TIME) ?? FOLLOW_MS,
    maxBodyBytes: size(query, "bodies", "0", MAX_FOLLOW_BODIES),
    candidates: flag(query, "candidates"),
    ...(expression !== undefined && { expression }),
    ...(where !== undefined && { where }),
  };
}

function traceOptions(query: URLSearchParams): TraceOptions {
  const expression = expressionText(query, "expression");
  const token = query.get("token");
  if (token !== null && !isTraceToken(token))
    throw new AdminBadRequest("invalid token: expected 22 to 128 letters, digits, - and _, chosen at random");
  const route = query.get("route") || undefined;
  const reveal = flag(query, "reveal");
  if (route !== undefined && (token !== null || reveal))
    throw new AdminBadRequest("route cannot be combined with token or reveal");
  const maxMs = duration(query, "duration", MAX_DURATION);
  return {
    reveal,
    maxBodyBytes: size(query, "bodies", MAX_TRACE_BODIES, MAX_TRACE_BODIES),
    ...(maxMs !== undefined && { maxMs }),
    ...(expression !== undefined && { expression }),
    ...(route !== undefined && { route }),
    ...(token !== null && { token }),
  };
}
