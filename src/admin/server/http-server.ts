import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { asError } from "../../base/errors.ts";
import type { InheritedSockets } from "../../base/inherited-sockets.ts";
import type { ListenAddress } from "../../base/listen-address.ts";
import type { Logger } from "../../base/log.ts";
import type { OwnSockets } from "../../base/own-sockets.ts";
import { isOwnRequest, LOOP_FIELD } from "../../base/process-id.ts";
import { AdminBadRequest, AdminForbidden, AdminGone, AdminUnavailable } from "../plane/plane.ts";
import { Admission } from "./admission.ts";
import { listen } from "./listen.ts";
import { closeOwnConnections } from "./own-connections.ts";
import { allowProxyHeaders } from "./proxy-headers.ts";
import { type PlainReply, type Reply, sentBody, textReply } from "./reply.ts";

/** A listening server. */
export interface RunningServer {
  /** `127.0.0.1:15000`, `[::1]:15000` or `unix:/path`, with the ports the system chose; empty when off. */
  readonly addresses: readonly string[];
  /** One for each address, for a process that takes over their sockets. */
  readonly servers: readonly Server[];
  /**
   * Stops listening, ends streams, lets short responses finish, and resolves when no connection is open. `handedOver`: another process has
   * the sockets too, and goes on.
   */
  close(handedOver?: boolean): Promise<void>;
}

interface HttpServerOptions {
  /** For messages, such as `admin`. */
  readonly name: string;
  /** The setting that holds the address, such as `adminAddr`. */
  readonly setting: string;
  readonly log: Logger;
  /** Where the port is recorded as one of the gateway's own servers. */
  readonly own: OwnSockets;
  /** Sockets that are used instead of new ones. */
  readonly inherited?: InheritedSockets | undefined;
  /** `signal` aborts when the client disconnects or the server closes. What it throws becomes an error response. */
  readonly handle: (request: IncomingMessage, signal: AbortSignal) => Reply | Promise<Reply>;
  /** Serves requests from this process, such as those to `internal` backends. Default: false. */
  readonly ownRequests?: boolean;
  /** Connections may begin with a PROXY header. Default: false. */
  readonly proxyHeaders?: boolean;
  /** Headers of every response to this request. */
  readonly headers?: (request: IncomingMessage) => Readonly<Record<string, string>>;
}

/** Milliseconds from the accept, or the first byte on a kept connection, to the end of a head (reference 4.3). */
const HEADERS_TIMEOUT = 2_000;
const REQUEST_TIMEOUT = 5_000;
/** Milliseconds that a connection may be idle between requests. */
const KEEP_ALIVE_TIMEOUT = 5_000;
/** Milliseconds between checks of the timeouts of heads and requests. */
const CHECK_INTERVAL = 500;
const MAX_HEAD = 8 * 1024;
/** Limits per server, so that no server can use up the connections of another. */
const CONNECTIONS = { connections: 128, perAddress: 64 } as const;
/** Milliseconds after which a client that reads nothing of its response is disconnected. */
const WRITE_STALL_TIMEOUT = 30_000;
const CLOSE_GRACE = 1_000;

/** Starts a small HTTP/1.1 server with tight limits and without pipelining. @throws Error when the address cannot be used; see `listen` */
export async function startHttpServer(address: ListenAddress, options: HttpServerOptions): Promise<RunningServer> {
  const closing = new AbortController();
  const create = (): Server => createLimitedServer(options, closing.signal);
  const { servers, addresses, file } = await listen(address, { ...options, create });
  return {
    addresses,
    servers,
    async close(handedOver = false) {
      closing.abort();
      if (handedOver) file?.keep();
      await Promise.all(servers.map(closeServer));
    },
  };
}

function createLimitedServer(options: HttpServerOptions, closing: AbortSignal): Server {
  const limits = {
    headersTimeout: HEADERS_TIMEOUT,
    requestTimeout: REQUEST_TIMEOUT,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT,
    connectionsCheckingInterval: CHECK_INTERVAL,
    maxHeaderSize: MAX_HEAD,
  };
  const busy = new WeakSet<Socket>();
  const server = createServer(limits, (request, response) => {
    const { socket } = request;
    // Responses to pipelined requests would be buffered until the client reads them, at far more cost than the requests.
    if (busy.has(socket)) {
      socket.destroy();
      return;
    }
    busy.add(socket);
    response.once("close", () => busy.delete(socket));
    serve(request, response, options, closing).catch((error: unknown) => {
      options.log.error("admin response failed", { server: options.name, error: asError(error) });
      response.destroy();
    });
  });
  if (options.proxyHeaders === true) allowProxyHeaders(server, closing);
  closeOwnConnections(server, options.name, options.own, options.log);
  // The listener added last sees a connection first: it bounds how many are examined at a time.
  new Admission(CONNECTIONS).guard(server);
  server.on("clientError", (error: Error, socket: Duplex) => refuseMalformed(error, socket));
  return server;
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  options: HttpServerOptions,
  closing: AbortSignal,
): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const signal = AbortSignal.any([gone.signal, closing]);
  for (const [name, value] of Object.entries(options.headers?.(request) ?? {})) response.setHeader(name, value);
  try {
    const reply = rejectOwnRequest(request, options) ?? (await options.handle(request, signal));
    if ("stream" in reply) await reply.stream(response);
    else send(response, reply, closing.aborted);
  } catch (error) {
    if (gone.signal.aborted || request.socket.destroyed) return;
    if (response.headersSent) response.destroy();
    else send(response, errorReply(error, request, options, closing), closing.aborted);
  }
}

/** The response to a request from this process that arrived through something that hides its connection, such as a load balancer. */
function rejectOwnRequest({ headers, url }: IncomingMessage, options: HttpServerOptions): PlainReply | undefined {
  const { [LOOP_FIELD]: loop } = headers;
  if (options.ownRequests === true || typeof loop !== "string" || !isOwnRequest(loop)) return undefined;
  options.log.warn("rejected a request from the gateway to its own server", { server: options.name, path: url });
  return textReply(508, "this request comes from the gateway itself\n");
}

function send(response: ServerResponse, reply: PlainReply, close: boolean): void {
  if (reply.after !== undefined) response.once("close", reply.after);
  for (const [name, value] of Object.entries(reply.headers ?? {})) response.setHeader(name, value);
  if (close) response.setHeader("connection", "close");
  const body = sentBody(reply.body, response.req.headers.accept);
  const length = typeof body === "string" ? Buffer.byteLength(body) : body.length;
  if (length > 0) response.setHeader("content-type", reply.type);
  response.setTimeout(WRITE_STALL_TIMEOUT, () => response.destroy());
  response.writeHead(reply.status, { "content-length": length });
  response.end(body);
}

/** Sends only the message of an error, never its stack or its cause. */
function errorReply(
  error: unknown,
  request: IncomingMessage,
  options: HttpServerOptions,
  closing: AbortSignal,
): PlainReply {
  if (error instanceof AdminUnavailable) return textReply(503, `${error.message}\n`);
  if (error instanceof AdminGone) return textReply(410, `${error.message}\n`);
  if (error instanceof AdminForbidden) return textReply(403, `${error.message}\n`);
  if (error instanceof AdminBadRequest) return textReply(400, `${error.message}\n`);
  if (closing.aborted) return textReply(503, "the gateway is shutting down\n");
  const cause = asError(error);
  options.log.error("request failed", { server: options.name, path: request.url, error: cause });
  return textReply(500, `internal error: ${cause.message.split("\n", 1)[0]}\n`);
}

const MALFORMED: Readonly<Record<string, readonly [string, string]>> = {
  HPE_HEADER_OVERFLOW: ["431 Request Header Fields Too Large", `request line and headers exceed ${MAX_HEAD} bytes`],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "the request took too long to arrive"],
};

function refuseMalformed(error: Error, socket: Duplex): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const code = "code" in error ? String(error.code) : "";
  const [status, message] = MALFORMED[code] ?? ["400 Bad Request", "the request is not valid HTTP/1.1"];
  const head = `HTTP/1.1 ${status}\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close`;
  socket.end(`${head}\r\ncontent-length: ${message.length + 1}\r\n\r\n${message}\n`);
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const grace = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE);
    server.close(() => {
      clearTimeout(grace);
      resolve();
    });
    server.closeIdleConnections();
  });
}
