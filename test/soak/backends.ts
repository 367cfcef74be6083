/** The servers behind the gateway: they send back what they get. */
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server } from "node:net";
import { WebSocketServer } from "ws";
import { GrpcServer } from "../helpers/grpc-server.ts";

/** What `GET /big` answers with. */
export const BIG = Buffer.alloc(1 << 20, "0123456789abcdef");

/** Their ports on 127.0.0.1. */
export interface Backends {
  /** HTTP/1.1 and WebSocket. */
  readonly http: number;
  readonly tcp: number;
  readonly grpc: number;
}

export async function startBackends(): Promise<Backends> {
  const http = createHttpServer((request, response) => {
    if (request.url === "/big") {
      response.writeHead(200, { "content-length": BIG.length }).end(BIG);
      return;
    }
    response.writeHead(200, { "content-type": "application/octet-stream" });
    request.pipe(response);
    request.on("error", () => response.destroy());
  });
  http.keepAliveTimeout = 0;
  const webSockets = new WebSocketServer({ server: http });
  webSockets.on("connection", (socket) => {
    socket.on("error", () => {});
    socket.on("message", (data, binary) => socket.send(data, { binary }));
  });
  const tcp = createTcpServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => socket.destroy());
    socket.pipe(socket);
  });
  const grpc = await GrpcServer.start({
    "/soak.Echo/Unary": { unary: (message) => message },
    "/soak.Echo/Stream": {
      stream: (call) => {
        call.on("error", () => {});
        call.on("data", (message: Buffer) => call.write(message));
        call.on("end", () => call.end());
      },
    },
  });
  return { http: await listen(http), tcp: await listen(tcp), grpc: grpc.port };
}

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}
