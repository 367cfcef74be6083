/**
 * A port of a pod at a port of this machine, through the API server: each connection becomes a WebSocket with the subprotocol
 * `v4.channel.k8s.io`, whose channel 0 carries the bytes and channel 1 the kubelet's error text. Both channels begin with a
 * message of the port number.
 */
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { type RawData, WebSocket } from "ws";
import { messageOf } from "../base/errors.ts";
import { KubeError, kubeError, PodConnectionError, resourcePath } from "./client.ts";
import type { ClusterAccess } from "./credentials.ts";
import { RESOURCES } from "./resources.ts";

const PROTOCOL = "v4.channel.k8s.io";
const CHANNEL = { data: 0, error: 1 } as const;
/** Bytes of the port number at the beginning of each channel. */
const PORT_BYTES = 2;
/** Milliseconds until the API server has opened the WebSocket. */
const HANDSHAKE_MS = 15_000;
const MAX_ERROR_TEXT = 64 * 1024;

interface PodPort {
  readonly namespace: string;
  readonly pod: string;
  readonly port: number;
}

/** Listens on 127.0.0.1 until `close`. A connection that cannot be forwarded is closed, and `failure` says why. */
export class PortForward {
  /** On 127.0.0.1. */
  readonly port: number;
  readonly #server: Server;
  readonly #state: State;

  /** Resolves when the local port accepts connections; the first connection opens the first WebSocket. */
  static async open(access: ClusterAccess, target: PodPort): Promise<PortForward> {
    const state: State = { failure: undefined, sockets: new Set() };
    const server = createServer({ pauseOnConnect: true }, (socket) => {
      state.sockets.add(socket);
      socket.once("close", () => state.sockets.delete(socket));
      // A reset by the local client ends the connection, which `close` reports.
      socket.on("error", () => undefined);
      forward(socket, access, target).catch((error: unknown) => {
        state.failure = error instanceof Error ? error : new Error(messageOf(error));
        socket.destroy();
      });
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen(0, "127.0.0.1", resolve);
    });
    return new PortForward(server, state);
  }

  private constructor(server: Server, state: State) {
    this.#server = server;
    this.#state = state;
    this.port = (server.address() as AddressInfo).port;
  }

  /** Why the last connection that failed did: a `KubeError` of the API server, or what the kubelet reported. */
  get failure(): Error | undefined {
    return this.#state.failure;
  }

  /** Stops listening, and closes all connections. */
  close(): void {
    this.#server.close();
    for (const socket of this.#state.sockets) socket.destroy();
  }
}

interface State {
  failure: Error | undefined;
  readonly sockets: Set<Socket>;
}

/** Carries one connection. Resolves when it is closed; rejects when the API server or the kubelet report an error. */
async function forward(socket: Socket, access: ClusterAccess, target: PodPort): Promise<void> {
  const closed = new AbortController();
  socket.once("close", () => closed.abort());
  const remote = await connect(access, target);
  if (closed.signal.aborted) return remote.terminate();
  socket.once("close", () => remote.terminate());

  let error = "";
  const started = new Set<number>();
  remote.on("message", (data: RawData) => {
    const frame = data as Buffer;
    const channel = frame[0] ?? -1;
    const first = !started.has(channel);
    started.add(channel);
    const bytes = frame.subarray(1 + (first ? PORT_BYTES : 0));
    if (bytes.length === 0) return;
    if (channel === CHANNEL.error) error = `${error}${bytes.toString("utf8")}`.slice(0, MAX_ERROR_TEXT);
    else if (channel === CHANNEL.data && !socket.write(bytes)) remote.pause();
  });
  socket.on("drain", () => remote.resume());
  socket.on("data", (bytes: Buffer) => {
    socket.pause();
    remote.send(Buffer.concat([DATA, bytes]), () => socket.resume());
  });
  const ended = new Promise<void>((resolve, reject) => {
    remote.on("error", reject);
    remote.on("close", () => resolve());
  });
  socket.resume();
  remote.resume();
  await ended;
  if (error !== "") throw new PodConnectionError(error.trim());
  socket.end();
}

const DATA = Buffer.from([CHANNEL.data]);

/** An open WebSocket that is paused. @throws KubeError when the API server refuses, or cannot be reached */
async function connect(access: ClusterAccess, { namespace, pod, port }: PodPort): Promise<WebSocket> {
  const { tls, headers, agent } = await access.credentials();
  const { server } = access;
  const path = `${resourcePath(RESOURCES.Pod, namespace, pod, "portforward")}?ports=${port}`;
  const scheme = server.protocol === "http:" ? "ws:" : "wss:";
  const url = `${scheme}//${server.host}${server.pathname.replace(/\/$/, "")}${path}`;
  const { promise, resolve, reject } = Promise.withResolvers<WebSocket>();
  const socket = new WebSocket(url, [PROTOCOL], {
    ...tls,
    // Its types allow only strings, but it passes the values to node:http unchanged.
    headers: headers as Record<string, string>,
    ...(agent !== undefined && { agent }),
    handshakeTimeout: HANDSHAKE_MS,
    perMessageDeflate: false,
  });
  // Messages may follow the response to the handshake before the caller listens.
  socket.once("open", () => {
    socket.pause();
    resolve(socket);
  });
  socket.once("error", (error) =>
    reject(new KubeError(0, "Connection", `GET ${path}: ${messageOf(error)}`, { cause: error })),
  );
  socket.once("unexpected-response", (request, response) => {
    let text = "";
    response.setEncoding("utf8");
    response.on("data", (part: string) => {
      text = (text + part).slice(0, MAX_ERROR_TEXT);
    });
    response.once("close", () => {
      reject(kubeError(response.statusCode ?? 0, text, "GET", path));
      request.destroy();
    });
  });
  return promise;
}
