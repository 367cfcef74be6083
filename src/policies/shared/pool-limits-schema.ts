import { z } from "zod";

/** Fields of the backend policies `http` and `tcp`; `waiting` names what waits for a connection. */
export function poolLimits(waiting: "requests" | "connections") {
  return {
    maxConnections: z
      .int()
      .min(1)
      .optional()
      .describe(
        `Connections that each worker has to one endpoint at a time, idle ones included; further ${waiting} wait for one, first come first served, at most \`connectTimeout\`. Default: 10000.`,
      ),
    maxPendingRequests: z
      .int()
      .min(0)
      .optional()
      .describe(
        waiting === "requests"
          ? "Requests of each worker that wait for a connection, or for a stream of HTTP/2, to one endpoint; further ones: 503. Default: 4096."
          : "Connections from clients that wait in each worker for one to an endpoint; further ones are closed. For HTTP, requests that wait: `http.maxPendingRequests` wins. Default: 4096.",
      ),
  };
}
