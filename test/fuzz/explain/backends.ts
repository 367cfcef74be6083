/** Backends that speak both versions of HTTP, in plaintext and TLS, and respond as a test says. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import {
  createServer as createHttp2Server,
  createSecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from "node:http2";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import type { AssumedResponse } from "../../../src/rehearsal/assumptions.ts";
import type { Identity } from "../../helpers/certificates.ts";
import { freePort } from "../../helpers/free-ports.ts";
import { BACKEND, IMPOSTOR } from "./certificates.ts";

/** A request as a backend gets it: names and values of headers alternate. */
export interface Sent {
  readonly method: string;
  readonly target: string;
  readonly headers: readonly string[];
}

export class Backends {
  /** The requests that have arrived. */
  readonly sent: Sent[] = [];
  /** To the next requests; after these, status 200. */
  responses: AssumedResponse[] = [];
  /** For plaintext, for TLS, for TLS with a certificate that nobody trusts; and one that is closed. */
  readonly ports: Readonly<Record<"plain" | "tls" | "unverified" | "gone", number>>;
  readonly #stop: () => void;

  private constructor(ports: Backends["ports"], stop: () => void) {
    this.ports = ports;
    this.#stop = stop;
  }

  static async start(): Promise<Backends> {
    const respond = (request: IncomingMessage | Http2ServerRequest, response: ServerResponse | Http2ServerResponse) =>
      backends.#respond(request, response);
    const http1 = createServer(respond);
    const http2 = createHttp2Server(respond);
    const secure = ({ cert, key }: Identity) => createSecureServer({ cert, key, allowHTTP1: true }, respond);
    const [tls, unverified] = [secure(BACKEND), secure(IMPOSTOR)];
    const sockets = new Set<Socket>();
    const plain = createTcpServer((socket) => {
      socket.once("data", (bytes: Buffer) => {
        socket.pause().unshift(bytes);
        const isHttp2 = bytes.toString("latin1").startsWith("PRI ");
        (isHttp2 ? http2 : http1).emit("connection", socket);
        if (!isHttp2) socket.resume();
      });
    });
    const servers = { plain, tls, unverified };
    const listening = Object.entries(servers).map(async ([name, server]) => {
      server.on("connection", (socket: Socket) => {
        sockets.add(socket.on("error", () => {}).once("close", () => sockets.delete(socket)));
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      return [name, (server.address() as AddressInfo).port];
    });
    const ports = { ...Object.fromEntries(await Promise.all(listening)), gone: await freePort() };
    const backends = new Backends(ports, () => {
      for (const server of Object.values(servers)) server.close();
      for (const socket of sockets) socket.destroy();
    });
    return backends;
  }

  #respond(request: IncomingMessage | Http2ServerRequest, response: ServerResponse | Http2ServerResponse): void {
    const { method = "", url: target = "", rawHeaders: headers } = request;
    this.sent.push({ method, target, headers });
    response.sendDate = false;
    request.resume().once("end", () => {
      const { status = 200, headers = {}, body = "" } = this.responses.shift() ?? {};
      const isGrpc = request.headers["content-type"]?.startsWith("application/grpc") === true;
      const isHttp2 = request.httpVersionMajor === 2;
      response.statusCode = status;
      if (!isHttp2) response.setHeader("content-length", Buffer.byteLength(body));
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
      if (!isHttp2 || !isGrpc || status !== 200) return void response.end(body);
      if (!("content-type" in headers)) response.setHeader("content-type", "application/grpc");
      response.addTrailers({ "grpc-status": "0" });
      // An empty message.
      response.end(Buffer.alloc(5));
    });
  }

  close(): void {
    this.#stop();
  }
}
