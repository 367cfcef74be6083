import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import { AdminClient, type TraceRequest } from "../../../src/admin/client/client.ts";
import type { RequestState, TraceEvent, TraceMessage } from "../../../src/trace/events.ts";
import type { RunningGateway } from "../../helpers/gateway.ts";

type Handler = (request: IncomingMessage, response: ServerResponse) => unknown;

/** An upstream whose responses a test chooses by path; other paths get 200 and the body `hello`. */
export class Upstream {
  readonly port: number;
  readonly #server: ReturnType<typeof createServer>;
  readonly #handlers = new Map<string, Handler>();
  connections = 0;

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
    server.on("connection", () => this.connections++);
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      const handler = this.#handlers.get(request.url?.split("?", 1)[0] ?? "");
      if (handler !== undefined) void handler(request, response);
      else request.resume().on("end", () => response.end("hello"));
    });
  }

  static async start(): Promise<Upstream> {
    // Its own keep-alive timeout would close pooled connections during a test.
    const server = createServer({ keepAliveTimeout: 0, requestTimeout: 0 });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Upstream(server);
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  on(path: string, handler: Handler): void {
    this.#handlers.set(path, handler);
  }

  /** Never responds to the next request for `path`; resolves with it once it has arrived. */
  hang(path: string): Promise<{ request: IncomingMessage; response: ServerResponse }> {
    return new Promise((resolve) => {
      this.on(path, (request, response) => {
        this.#handlers.delete(path);
        resolve({ request, response });
      });
    });
  }

  async close(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    if (this.#server.listening) await once(this.#server, "close");
  }
}

/** A port of 127.0.0.1 where nothing listens. */
export async function closedPort(): Promise<number> {
  const upstream = await Upstream.start();
  await upstream.close();
  return upstream.port;
}

export interface Call {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Buffer;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

/** One request on its own connection. Host is `a.test` unless given. */
export async function call(port: number, { method = "GET", path = "/", headers = {}, body }: Call): Promise<Answer> {
  const request = httpRequest({ host: "127.0.0.1", port, method, path, agent: false });
  request.setHeader("host", "a.test");
  for (const [name, value] of Object.entries(headers)) request.setHeader(name, value);
  if (body !== undefined) request.setHeader("content-length", Buffer.byteLength(body));
  request.end(body);
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return { status: response.statusCode ?? 0, headers: response.headers, body: await buffer(response) };
}

/** A client on a bare socket, which can leave at any time. */
export async function rawClient(port: number, text: string): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  await once(socket, "connect");
  socket.write(text);
  return socket;
}

export function admin(gateway: RunningGateway): AdminClient {
  return new AdminClient(gateway.url("admin"));
}

/** Opens a trace, does `act` once it waits, and returns all events of the stream. */
export async function traceOf(
  gateway: RunningGateway,
  act: () => unknown,
  options: TraceRequest = {},
): Promise<readonly TraceEvent[]> {
  const stream = admin(gateway).trace({ ...options, signal: options.signal ?? AbortSignal.timeout(30_000) });
  await stream.opened;
  const events: TraceEvent[] = [];
  const acted = Promise.resolve(act());
  for await (const { raw } of stream) events.push(JSON.parse(raw) as TraceEvent);
  await acted;
  return events;
}

/**
 * `requestSnapshot initial request`, `policySelection route`, …: the sequence that the interface describes. Without progress, which a timer
 * adds where a request takes longer than a second, as on a slow machine.
 */
export function sequence(events: readonly TraceEvent[]): string[] {
  return events.flatMap(({ message }) => {
    if (message.type === "streamProgress") return [];
    if ("stage" in message) return [`${message.type} ${message.stage}`];
    return ["phase" in message ? `${message.type} ${message.phase}` : message.type];
  });
}

/** The only message of a type. */
export function messageOf<T extends TraceMessage["type"]>(
  events: readonly TraceEvent[],
  type: T,
): Extract<TraceMessage, { type: T }> {
  const found = events.filter(({ message }) => message.type === type);
  if (found.length !== 1) throw new Error(`${found.length} events ${type} in ${sequence(events).join(", ")}`);
  return found[0]?.message as Extract<TraceMessage, { type: T }>;
}

/** The state that the snapshot of a stage carries. */
export function stateAt(events: readonly TraceEvent[], stage: string): RequestState {
  for (const { message } of events)
    if ((message.type === "requestSnapshot" || message.type === "responseSnapshot") && message.stage === stage)
      return message.requestState;
  throw new Error(`no snapshot ${stage} in ${sequence(events).join(", ")}`);
}

/** Text of the body snapshot of a stage. */
export function bodyAt(events: readonly TraceEvent[], stage: string): { text: Buffer; truncated: boolean } {
  for (const { message } of events)
    if (message.type === "bodySnapshot" && message.stage === stage)
      return { text: Buffer.from(message.body, "base64"), truncated: message.truncated === true };
  throw new Error(`no body of ${stage} in ${sequence(events).join(", ")}`);
}
