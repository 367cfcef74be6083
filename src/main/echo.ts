import { createServer, type Server } from "node:http";

/**
 * The upstream of the quick start: answers every request with what it received, as JSON, so that a user sees what the
 * gateway sent on. Rejects when the port is taken.
 */
export function startEcho(port: number): Promise<Server> {
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const { method, url, headers } = request;
      const body = Buffer.concat(parts).toString("utf8");
      response.setHeader("content-type", "application/json");
      response.end(`${JSON.stringify({ method, url, headers, body }, undefined, 2)}\n`);
    });
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}
