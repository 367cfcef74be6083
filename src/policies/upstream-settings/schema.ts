/**
 * Settings of the connections to a backend and of the choice among its endpoints. Users write them among its policies
 * (reference 3.21, 3.23, 3.26, 3.27), but they do no work on requests: connection pools and balancers read them.
 */
import { z } from "zod";
import { key } from "../backend-auth/basic-schema.ts";
import { condition, expression } from "../shared/cel-schema.ts";
import { duration, service } from "../shared/field-schemas.ts";
import { fileName } from "../shared/source-schema.ts";

export const backendTLS = z
  .strictObject({
    cert: fileName.optional().describe("PEM file of the certificate that the gateway shows; needs `key`."),
    key: fileName.optional().describe("PEM file of its private key."),
    root: fileName
      .optional()
      .describe("PEM file of the CAs that backends are checked against. Default: those of the system."),
    hostname: z.string().min(1).optional().describe("Name to ask for and to check. Default: the host of the backend."),
    insecure: z
      .boolean()
      .default(false)
      .describe("Skips all verification of the backend's certificate, so any server can pose as the backend."),
    insecureHost: z.boolean().default(false).describe("Checks who has signed the certificate, but not its name."),
    alpn: z
      .array(z.string().min(1))
      .optional()
      .describe(
        "Protocols to offer, such as `[h2, http/1.1]`: what the backend picks is spoken. Default: the version of HTTP that `http.version` or the request asks for; nothing for TCP routes.",
      ),
    subjectAltNames: z
      .array(z.string().min(1))
      .optional()
      .describe("Names of which the certificate must have one, in place of `hostname`."),
    keyExchangeGroups: z
      .array(z.enum(["X25519", "P-256", "P-384", "X25519_MLKEM768"]))
      .min(1)
      .optional()
      .describe("Key exchanges that are offered, the preferred first. Default: the runtime's."),
  })
  .refine(({ cert, key }) => (cert === undefined) === (key === undefined), {
    message: "cert and key belong together; set both or none",
  })
  .describe("Connections to the backend use TLS.");

export type BackendTlsInput = z.output<typeof backendTLS>;

export const backendTunnel = z
  .strictObject({
    proxy: z
      .strictObject({
        host: z.string().optional().describe("`host:port`, `ip:port` or `unix:/path` of the proxy."),
        service: service.service,
        backend: z
          .string()
          .optional()
          .describe("A named backend: `/name`; of its policies `backendTLS` and `backendAuth.key` count."),
      })
      .describe("The proxy: one of `host`, `service` and `backend`."),
    policies: z
      .strictObject({
        backendTLS: backendTLS.optional().describe("Connections to the proxy itself use TLS."),
        backendAuth: z
          .strictObject({
            key: key.describe(
              "Credential in a header's form; a text alone is sent as `Proxy-Authorization: Bearer …`.",
            ),
          })
          .optional()
          .describe("What the proxy asks for in Proxy-Authorization."),
      })
      .optional()
      .describe("For the proxy; they win over those of a named backend."),
  })
  .describe(
    "Connections to the backend go through an HTTP proxy: with TLS, and for TCP routes, by CONNECT; without, the proxy gets the requests to forward, with the backend's address as their Host.",
  );

export type BackendTunnelInput = z.output<typeof backendTunnel>;

export const tcp = z
  .strictObject({
    connectTimeout: duration
      .optional()
      .describe("Until a connection is there; later: 504. Default: that of `config.backend`."),
    keepalives: z
      .strictObject({
        enabled: z.boolean().default(true).describe("Whether silent connections are probed."),
        time: duration.prefault("180s").describe("Silence before the first probe."),
        interval: duration.optional().describe("Between probes; the system's own setting applies."),
        retries: z.int().min(1).optional().describe("Probes without answer; the system's own setting applies."),
      })
      .optional()
      .describe("TCP keepalives of the connections. Default: those of `config.backend`."),
    ...poolLimits("connections"),
  })
  .describe("Sockets to a backend.");

export const http = z
  .strictObject({
    version: z
      .enum(["HTTP/1.1", "HTTP/2.0"])
      .optional()
      .describe(
        "Version to speak with the backend; `HTTP/2.0` without TLS as h2c with prior knowledge. Default: what `appProtocols` of the service says, else HTTP/2 for gRPC from clients inside TLS and HTTP/1.1 for everything else.",
      ),
    requestTimeout: duration
      .optional()
      .describe("From the call to the response's head; replaces `timeout.backendRequestTimeout`; else 504."),
    ...poolLimits("requests"),
  })
  .describe("How HTTP is spoken with a backend.");

const share = z.number().min(0).max(1);

export const health = z
  .strictObject({
    unhealthyExpression: condition("response")
      .optional()
      .describe(
        "CEL over the request and the response head, with `response.grpcStatus` from head or trailers; true counts the call as failed. Default, also when the expression fails: a status of 5xx or a gRPC status other than 0. A call without a response always counts as failed.",
      ),
    eviction: z
      .strictObject({
        duration: duration
          .optional()
          .describe(
            "How long an endpoint gets no requests; the second time in a row twice as long, and so on. Default: what a 429 says in `Retry-After` or a header like it, else the backoff of `retry`, else 3 s.",
          ),
        restoreHealth: share
          .optional()
          .describe("Health of the endpoint when it comes back, 0 to 1. Default: what it was."),
        consecutiveFailures: z
          .int()
          .min(1)
          .optional()
          .describe("Evicts at that many failures in a row. Neither this nor `healthThreshold`: at every failure."),
        healthThreshold: share
          .optional()
          .describe("Evicts at a failure when the health was below this before; 0 to 1."),
      })
      .optional()
      .describe("When failures take an endpoint out of the choice. Default: they only lower its health."),
  })
  .describe(
    "What counts as a failed call, and when an endpoint that fails gets no requests for a while. When all endpoints are evicted they are used all the same. Each worker thread counts the calls that it has made itself; what one evicts, the others do not use either.",
  );

export const sessionAffinity = z
  .strictObject({
    source: expression("request").describe(
      'CEL over the request that gives a string or bytes, such as `request.headers["x-user"]`; when it fails or is empty, any endpoint is chosen.',
    ),
  })
  .describe(
    "Sends requests with the same value to the same endpoint of a `service`. When an endpoint comes, goes or is evicted, only its own requests move.",
  );

/** Fields of the backend policies `http` and `tcp`; `waiting` names what waits for a connection. */
function poolLimits(waiting: "requests" | "connections") {
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
