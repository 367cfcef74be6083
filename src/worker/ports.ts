import { createServer, type Server } from "node:net";
import type { Bind } from "../ir/ir.ts";
import type { Ports } from "../proxy/data-plane.ts";

/** A port that a bind asks for cannot be listened on. */
export class PortError extends Error {}

/** The ports of a configuration; those that the system has chosen are held until `release`, so that nobody takes them. */
export interface ProbedPorts {
  readonly ports: Ports;
  release(): void;
}

/**
 * Proves that each new port can be had and turns port 0 into a real one. Workers listen with SO_REUSEPORT, which would
 * silently share a port with another gateway of the same user; an exclusive listen tells. The system gives out port 0 to
 * one only; it is held beside the workers (`reusePort`), until they listen.
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
    // Nobody knows a port that is held: who finds it is turned away.
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
