import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type SecureServerOptions,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
} from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import type { PolicySet } from "../../../src/policies/policy-set.ts";
import { type PlaneOptions, TestPlane } from "../../helpers/data-plane.ts";
import { RawPeer } from "../../helpers/raw-peer.ts";

/** `raw`: the fields as they came, flat. */
type Serve = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, raw: readonly string[]) => void;

/** A server of HTTP/2 in the test's own process, on a free port of 127.0.0.1. */
export class H2Server {
  readonly server: Http2Server | Http2SecureServer;
  /** In the order in which they were opened; those that are closed stay. */
  readonly sessions: ServerHttp2Session[] = [];
  /** The most streams that were open at once on one connection. */
  busiest = 0;

  readonly #sockets: Socket[] = [];

  private constructor(server: Http2Server | Http2SecureServer, serve: Serve) {
    this.server = server;
    server.on("connection", (socket: Socket) => this.#sockets.push(socket));
    server.on("session", (session: ServerHttp2Session) => {
      this.sessions.push(session);
      session.on("error", () => {});
      let open = 0;
      session.on("stream", (stream: ServerHttp2Stream) => {
        this.busiest = Math.max(this.busiest, ++open);
        stream.on("close", () => open--);
      });
    });
    server.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, raw: string[]) => {
      stream.on("error", () => {});
      serve(stream, headers, raw);
    });
  }

  static async start(serve: Serve, options: ServerOptions = {}): Promise<H2Server> {
    return new H2Server(createServer(options), serve).#listen();
  }

  /** `serveHttp1`: for clients that have negotiated HTTP/1.1. */
  static async startTls(
    serve: Serve,
    options: SecureServerOptions,
    serveHttp1: (request: IncomingMessage, response: ServerResponse) => void = () => {},
  ): Promise<H2Server> {
    const server = createSecureServer(options);
    server.on("request", (request, response) => {
      if (request.httpVersionMajor === 1)
        serveHttp1(request as unknown as IncomingMessage, response as unknown as ServerResponse);
    });
    return new H2Server(server, serve).#listen();
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get open(): number {
    return this.sessions.filter(({ destroyed }) => !destroyed).length;
  }

  async #listen(): Promise<this> {
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
    return this;
  }

  [Symbol.dispose](): void {
    this.server.close();
    for (const session of this.sessions) session.destroy();
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** Responds with `text` when the request has ended. */
export function answer(stream: ServerHttp2Stream, text: string, headers: Record<string, string> = {}): void {
  stream.resume();
  stream.once("end", () => {
    stream.respond({ ":status": 200, ...headers });
    stream.end(text);
  });
}

/** A gateway with one route, to a port that speaks HTTP/2. */
export function gatewayTo(
  port: number,
  options: PlaneOptions & { readonly policies?: PolicySet; readonly backendPolicies?: PolicySet } = {},
): Promise<TestPlane> {
  const { policies = {}, backendPolicies = {} } = options;
  const target = { type: "static", host: "127.0.0.1", port } as const;
  const all = { http: { version: "HTTP/2.0" }, ...backendPolicies } as const;
  return TestPlane.start([{ target, policies, backendPolicies: all }], options);
}

/** A client that has sent one request. */
export async function send(plane: { readonly port: number }, request: string): Promise<RawPeer> {
  const client = await RawPeer.connect(plane.port);
  client.send(request);
  return client;
}

/** `GET / HTTP/1.1` and the like, with Host. */
export function head(start: string, ...fields: string[]): string {
  return `${[start, "Host: shop.example", ...fields].join("\r\n")}\r\n\r\n`;
}
