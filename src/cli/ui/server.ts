/** Serves the web view on this machine, and asks gateways what it wants to know. */
import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { adminHeaders, dispatchTo, routesByPath } from "../../admin/admin-server.ts";
import { ADMIN_ROUTES } from "../../admin/routes/all.ts";
import type { AdminRoute } from "../../admin/routes/route.ts";
import { pageTokenReply } from "../../admin/routes/ui.ts";
import { Guard } from "../../admin/server/guard.ts";
import { startHttpServer } from "../../admin/server/http-server.ts";
import { type PlainReply, textReply } from "../../admin/server/reply.ts";
import { SseReader } from "../../admin/server/sse-reader.ts";
import { webViewFile } from "../../admin/server/web-view.ts";
import { codeOf } from "../../base/errors.ts";
import type { ListenAddress } from "../../base/listen-address.ts";
import type { Logger } from "../../base/log.ts";
import { OwnSockets } from "../../base/own-sockets.ts";
import { sameSecret } from "../../base/same-secret.ts";
import { MERGES, type MergedEndpoint } from "../merge/merges.ts";
import type { ViewAddress } from "./address.ts";
import { unavailable } from "./unavailable.ts";

/** Bytes: those of a configuration whose impact is asked for. */
const MAX_BODY = 16 * 1024 * 1024;

/** A question of the view. */
export interface ViewQuestion {
  readonly endpoint: MergedEndpoint;
  readonly method: "GET" | "POST";
  /** It changes something, and the view has shown its token. */
  readonly changes: boolean;
  /** What follows an endpoint that ends in `/`, decoded; otherwise empty. */
  readonly rest: string;
  readonly query: URLSearchParams;
  /** Empty by GET. */
  readonly body: string;
  readonly signal: AbortSignal;
}

/** The gateways that are shown. */
export interface ViewSource {
  /** Never rejects: a question without an answer has a reply that says why. */
  answer(question: ViewQuestion): Promise<PlainReply>;
  /** The next request that fits the query of `/debug/trace`, whichever of the gateways gets it. @throws CliError if none can wait for it */
  trace(query: URLSearchParams, signal: AbortSignal): Promise<Trace>;
}

/** The events of the trace, once a gateway waits for a request. */
type Trace = AsyncGenerator<{ readonly raw: string }>;

interface RunningView {
  /** `http://localhost:<port>/<secret>/ui/` */
  readonly url: string;
  /** Leads a browser to `url`, once: other users can see the command line that opens the browser, and must not learn the address. */
  readonly ticket: string;
  close(): Promise<void>;
}

const ENDPOINTS = Object.keys(MERGES) as readonly MergedEndpoint[];

/** The routes of gateways that the view may ask. */
const PASSED_ON = ADMIN_ROUTES.flatMap((route) => {
  const path = ENDPOINTS.find((endpoint) => endpoint === route.path);
  return path === undefined ? [] : [{ ...route, path }];
});

const ROUTES = routesByPath<ViewSource>([
  { path: "/", methods: ["GET"], summary: "redirects to the view", handle: () => redirect("ui/") },
  { path: "/ui", methods: ["GET"], summary: "redirects to the view", handle: () => redirect("ui/") },
  { path: "/ui/", methods: ["GET"], summary: "the view", handle: ({ rest, headers }) => webViewFile(rest, headers) },
  {
    path: "/page-token",
    methods: ["POST"],
    onlyReads: true,
    summary: "what the view shows to change something",
    handle: ({ pageToken }) => pageTokenReply(pageToken()),
  },
  {
    path: "/debug/trace",
    methods: ["GET"],
    // Secrets are never revealed here.
    parameters: ["expression", "route", "bodies", "duration"],
    summary: "events of the next request",
    handle: async ({ plane, query, signal }) => {
      try {
        const events = await plane.trace(query, signal);
        return { stream: (response) => writeEvents(events, new SseReader(response)) };
      } catch (error) {
        return unavailable(error);
      }
    },
  },
  ...PASSED_ON.map(
    ({ path, methods, onlyReads }): AdminRoute<ViewSource> => ({
      path,
      methods,
      ...(onlyReads && { onlyReads }),
      parameters: "any",
      maxBody: MAX_BODY,
      summary: "an answer of the gateways",
      handle: ({ plane, method, rest, query, body, signal }) =>
        plane.answer({
          endpoint: path,
          method: method === "POST" ? "POST" : "GET",
          changes: method !== "GET" && !onlyReads,
          rest,
          query,
          body: body.toString("utf8"),
          signal,
        }),
    }),
  ),
]);

/**
 * Serves until it is closed, on loopback addresses only. If the port of the address is in use, another one is taken.
 * @throws Error if no port can be used
 */
export async function serveView(source: ViewSource, { port, secret }: ViewAddress, log: Logger): Promise<RunningView> {
  const guard = new Guard({ type: "localhost", port });
  const own = new OwnSockets();
  // A gateway closes connections of its own to its servers; this process has none to lead back here.
  own.guarded = false;
  const ticket = randomBytes(20).toString("base64url");
  let used = false;
  const handle = (request: IncomingMessage, signal: AbortSignal) => {
    const refused = guard.check(request);
    if (refused !== undefined) return refused;
    const [, first = "", rest = ""] = /^\/([^/?]*)(.*)$/s.exec(request.url ?? "") ?? [];
    if (!used && sameSecret(first, ticket)) {
      used = true;
      return redirect(`/${secret}/ui/`);
    }
    if (!sameSecret(first, secret)) return textReply(404, "this is not the address that tgctl ui has printed\n");
    if (rest === "") return redirect(`/${secret}/ui/`);
    request.url = rest;
    return dispatchTo(ROUTES, source, guard, request, signal);
  };
  const listen = (address: ListenAddress) =>
    startHttpServer(address, {
      name: "web view",
      setting: "the port",
      log,
      own,
      headers: (request) => adminHeaders(guard, request),
      handle,
    });
  const server = await listen({ type: "localhost", port }).catch((error: unknown) => {
    if (!(error instanceof Error) || codeOf(error.cause) !== "EADDRINUSE") throw error;
    return listen({ type: "localhost", port: 0 });
  });
  const [, chosen = ""] = /:(\d+)$/.exec(server.addresses[0] ?? "") ?? [];
  const base = `http://localhost:${chosen}`;
  return { url: `${base}/${secret}/ui/`, ticket: `${base}/${ticket}`, close: () => server.close() };
}

/** Writes as fast as the browser reads, until the trace ends or the browser goes. */
async function writeEvents(events: Trace, reader: SseReader): Promise<void> {
  let isOver = false;
  void reader.ended.then(() => {
    isOver = true;
  });
  reader.start();
  for await (const { raw } of events) {
    while (!isOver && !reader.event(raw)) {
      const drained = new Promise<void>((resolve) => {
        reader.onDrain = resolve;
      });
      await Promise.race([drained, reader.ended]);
    }
    if (isOver) return;
  }
  reader.end();
}

function redirect(location: string): PlainReply {
  return textReply(303, "", { location });
}
