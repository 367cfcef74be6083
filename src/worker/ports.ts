import { createServer } from "node:net";
import type { Bind } from "../ir/ir.ts";
import type { Ports } from "../proxy/data-plane.ts";

/** A port that a bind asks for cannot be listened on. */
export class PortError extends Error {}

/**
 * Proves that each new port can be had and turns port 0 into a real one. Workers listen with SO_REUSEPORT, which would
 * silently share a port with another gateway of the same user; an exclusive listen tells.
 */
export async function probePorts(binds: readonly Bind[], open: Ports): Promise<Ports> {
  const ports: Record<string, number> = {};
  for (const bind of binds) {
    if (bind.mode === "internal") continue;
    const known = open[bind.key];
    ports[bind.key] = known ?? (await probe(bind));
  }
  return ports;
}

function probe(bind: Bind): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => {
      reject(new PortError(`cannot listen on port ${bind.port} for ${bind.key}: ${explain(error)}`));
    });
    server.listen({ host: bind.host, port: bind.port, exclusive: true }, () => {
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : bind.port;
      server.close(() => resolve(port));
    });
  });
}

function explain(error: NodeJS.ErrnoException): string {
  if (error.code === "EADDRINUSE") return "the port is in use; stop the program that uses it or choose another port";
  if (error.code === "EACCES") return "not permitted; ports below 1024 need a privileged user";
  return error.message;
}
