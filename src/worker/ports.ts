/**
 * Ports before a reload: the main thread proves that each new port is free, and has the system choose a number for port 0,
 * before any worker listens. Called by the supervisor.
 */
import { createServer, type Server } from "node:net";
import type { Bind } from "../ir/ir.ts";
import type { Ports } from "../proxy/data-plane.ts";

/** A bind's port cannot be opened; the message says which, why, and what to do. */
export class PortError extends Error {}

/** The ports of a configuration by bind key. */
export interface ProbedPorts {
  readonly ports: Ports;
  /** Closes the sockets that reserve the ports chosen by the system. Call it once the workers listen, or have failed to. */
  release(): void;
}

/**
 * Checks that new ports are free and replaces port 0 by a number that all workers share. Workers listen with SO_REUSEPORT
 * (socket(7)), which would silently share a port with another gateway of the same user, each getting a part of the connections;
 * an exclusive listen fails instead. A port that the system chose stays open, with SO_REUSEPORT, until `release`: otherwise
 * another process could get it before the workers do. `open` are the ports in use, which are kept. Rejects with PortError.
 */
export async function probePorts(binds: readonly Bind[], open: Ports, reusePort: boolean): Promise<ProbedPorts> {
  const ports: Record<string, number> = {};
  const held: Server[] = [];
  const release = (): void => {
    for (const server of held) server.close();
  };
  try {
    for (const bind of binds) {
      if (bind.mode === "internal") continue;
      const known = open[bind.key];
      if (known !== undefined) {
        ports[bind.key] = known;
        continue;
      }
      const hold = reusePort && bind.port === 0;
      const server = await listen(bind, hold);
      const address = server.address();
      ports[bind.key] = typeof address === "object" && address !== null ? address.port : bind.port;
      if (hold) held.push(server);
      else await new Promise((resolve) => server.close(resolve));
    }
  } catch (error) {
    release();
    throw error;
  }
  return { ports, release };
}

function listen(bind: Bind, reusePort: boolean): Promise<Server> {
  return new Promise((resolve, reject) => {
    // A reserved port is not announced yet; a stray connection is closed.
    const server = createServer((socket) => socket.destroy());
    server.once("error", (error: NodeJS.ErrnoException) => {
      reject(new PortError(`cannot listen on port ${bind.port} for ${bind.key}: ${explain(error)}`));
    });
    server.listen({ host: bind.host, port: bind.port, exclusive: true, reusePort }, () => resolve(server));
  });
}

function explain(error: NodeJS.ErrnoException): string {
  if (error.code === "EADDRINUSE") return "the port is in use; stop the program that uses it or choose another port";
  if (error.code === "EACCES") return "not permitted; ports below 1024 need a privileged user";
  return error.message;
}
