import { once } from "node:events";
import { connect, createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Child } from "./proc.ts";

/** A TCP port that was free a moment ago. All are held until the last is known, so that they differ. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => {
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no TCP port");
    return address.port;
  });
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  return ports;
}

export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

/** Waits until the child accepts connections on the port; throws with its log when it ends or 30 seconds pass. */
export async function waitForPort(port: number, child: Child): Promise<void> {
  await waitFor(child, `port ${port}`, () => accepts(port));
}

/** Asks every 5 ms until `ready` says yes; throws with the child's log when it ends or 30 seconds pass. */
export async function waitFor(child: Child, what: string, ready: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!(await ready())) {
    if (child.exited) throw new Error(`${child.name} ended before ${what} was ready:\n${child.logTail()}`);
    if (performance.now() > deadline)
      throw new Error(`${child.name}: ${what} not ready after 30 s:\n${child.logTail()}`);
    await delay(5);
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
