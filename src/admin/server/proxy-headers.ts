import type { Server } from "node:http";
import type { Socket } from "node:net";
import { parseProxyHeader } from "../../base/proxy-protocol.ts";

/** Milliseconds until the first bytes must have shown whether there is a header; probes send theirs at once. */
const TIMEOUT = 2_000;

/**
 * Lets connections to `server` begin with a PROXY header of either version, which is skipped: a load balancer that sends
 * one to the gateway's ports also sends it with its probes. Connections without any bytes yet end when `closing` aborts.
 */
export function allowProxyHeaders(server: Server, closing: AbortSignal): void {
  const silent = new Set<Socket>();
  closing.addEventListener("abort", () => {
    for (const socket of silent) socket.destroy();
  });
  const listeners = server.listeners("connection");
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    silent.add(socket);
    socket.once("close", () => silent.delete(socket));
    skipHeader(socket, () => {
      silent.delete(socket);
      for (const listener of listeners) listener.call(server, socket);
    });
  });
}

function skipHeader(socket: Socket, serve: () => void): void {
  let held = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), TIMEOUT);
  const settle = (): void => {
    clearTimeout(timer);
    socket.off("data", read).off("end", destroy).off("error", destroy).off("close", settle);
  };
  const destroy = (): void => {
    socket.destroy();
  };
  const read = (bytes: Buffer): void => {
    held = Buffer.concat([held, bytes]);
    const header = parseProxyHeader(held, "all");
    if (header.state === "more") return;
    settle();
    if (header.state === "invalid") {
      socket.on("error", () => {});
      socket.destroy();
      return;
    }
    socket.pause();
    socket.unshift(header.state === "complete" ? held.subarray(header.length) : held);
    serve();
    socket.resume();
  };
  socket.on("data", read).on("end", destroy).on("error", destroy).on("close", settle);
}
