/**
 * Settings of connections to a backend and of the choice among its endpoints. Users write them among its policies (reference
 * 3.21, 3.23, 3.26, 3.27), but connection pools and balancers apply them. Defaults that are not given here are those of
 * `config.backend`, which are applied where targets are translated.
 */
import { z } from "zod";
import { key } from "../backend-auth/basic-schema.ts";
import { condition, expression } from "../shared/cel-schema.ts";
import { duration, service } from "../shared/field-schemas.ts";
import { fileName } from "../shared/source-schema.ts";

export const backendTLS = z
  .strictObject({
    cert: fileName.optional().describe("PEM file of the gateway's client certificate; requires `key`."),
    key: fileName.optional().describe("PEM file of the certificate's private key."),
    root: fileName
      .optional()
      .describe("PEM file of the CAs that verify the backend's certificate. Default: the system's CAs."),
    hostname: z
      .string()
      .min(1)
      .optional()
      .describe("Server name to send (SNI) and to verify. Default: the host of the backend."),
    insecure: z
      .boolean()
      .default(false)
      .describe("Skips all verification of the backend's certificate, so any server can pose as the backend."),
    insecureHost: z.boolean().default(false).describe("Verifies the certificate's issuer but not its names."),
    alpn: z
      .array(z.string().min(1))
      .optional()
      .describe(
        "ALPN protocols to offer, such as `[h2, http/1.1]`; the backend's choice is used. Default: the version of HTTP from `http.version` or the request; none for TCP routes.",
      ),
    subjectAltNames: z
      .array(z.string().min(1))
      .optional()
      .describe("The certificate must have one of these host names or URIs, instead of `hostname`."),
    keyExchangeGroups: z
      .array(z.enum(["X25519", "P-256", "P-384", "X25519_MLKEM768"]))
      .min(1)
      .optional()
      .describe("Key exchanges to offer, in order of preference. Default: those of Node.js."),
  })
  .refine(({ cert, key }) => (cert === undefined) === (key === undefined), {
    message: "cert and key belong together; set both or none",
  })
  .describe("Uses TLS on connections to the backend.");

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
          .describe("A named backend: `/name`; its policies `backendTLS` and `backendAuth.key` apply."),
      })
      .describe("The proxy: one of `host`, `service` and `backend`."),
    policies: z
      .strictObject({
        backendTLS: backendTLS.optional().describe("Uses TLS on connections to the proxy."),
        backendAuth: z
          .strictObject({
            key: key.describe(
              "Credential, as for `backendAuth`. A plain string is sent as `Proxy-Authorization: Bearer …`.",
            ),
          })
          .optional()
          .describe("Credential that is sent in Proxy-Authorization."),
      })
      .optional()
      .describe("For the proxy; take precedence over those of a named backend."),
  })
  .describe(
    "Connects to the backend through an HTTP proxy. TLS backends and TCP routes use CONNECT; other requests are sent to the proxy for forwarding, with the backend's address as Host.",
  );

export type BackendTunnelInput = z.output<typeof backendTunnel>;

export const tcp = z
  .strictObject({
    connectTimeout: duration
      .optional()
      .describe("Time to establish a connection, then 504. Default: that of `config.backend`."),
    keepalives: z
      .strictObject({
        enabled: z.boolean().default(true).describe("Whether idle connections are probed."),
        time: duration.prefault("180s").describe("Idle time before the first probe."),
        interval: duration.optional().describe("Time between probes; the operating system's setting applies."),
        retries: z
          .int()
          .min(1)
          .optional()
          .describe("Unanswered probes before the connection is closed; the operating system's setting applies."),
      })
      .optional()
      .describe("TCP keepalives. Default: those of `config.backend`."),
    ...poolLimits("connections"),
  })
  .describe("Settings of connections to a backend: timeout, keepalive and limits.");

export const http = z
  .strictObject({
    version: z
      .enum(["HTTP/1.1", "HTTP/2.0"])
      .optional()
      .describe(
        "HTTP version of calls to the backend; `HTTP/2.0` without TLS is h2c with prior knowledge. Default: from `appProtocols` of the service, else HTTP/2 for gRPC from clients inside TLS and HTTP/1.1 for everything else.",
      ),
    requestTimeout: duration
      .optional()
      .describe("Time from the call to the response's head, then 504; replaces `timeout.backendRequestTimeout`."),
    ...poolLimits("requests"),
  })
  .describe("HTTP settings of calls to a backend: version, timeout and limits.");

const share = z.number().min(0).max(1);

export const health = z
  .strictObject({
    unhealthyExpression: condition("response")
      .optional()
      .describe(
        "CEL over the request and the response head, with `response.grpcStatus` from head or trailers. If true, the call counts as failed. Default, and if the expression fails: a 5xx status or a gRPC status other than 0. A call without a response always counts as failed.",
      ),
    eviction: z
      .strictObject({
        duration: duration
          .optional()
          .describe(
            "Duration of an eviction, multiplied by the number of consecutive evictions. Default: `Retry-After` of a 429 or a similar header, else the backoff of `retry`, else 3 s.",
          ),
        restoreHealth: share
          .optional()
          .describe("Health of the endpoint after its eviction, 0 to 1. Default: unchanged."),
        consecutiveFailures: z
          .int()
          .min(1)
          .optional()
          .describe(
            "Evicts an endpoint after this many consecutive failures. Without this and `healthThreshold`: after every failure.",
          ),
        healthThreshold: share
          .optional()
          .describe("Evicts an endpoint on a failure if its health was already below this value; 0 to 1."),
      })
      .optional()
      .describe("When failures evict an endpoint. Default: failures only lower its health."),
  })
  .describe(
    "Outlier detection: what counts as a failed call, and when a failing endpoint is evicted, so that it gets no requests for a while. If all endpoints are evicted, they are used anyway. Each worker thread counts its own calls; an eviction applies to all workers.",
  );

export const sessionAffinity = z
  .strictObject({
    source: expression("request").describe(
      'CEL over the request that returns a string or bytes, such as `request.headers["x-user"]`; if it fails or is empty, any endpoint is chosen.',
    ),
  })
  .describe(
    "Sends requests with the same value to the same endpoint of a `service` (rendezvous hashing). If an endpoint is added, removed or evicted, only its share of requests moves.",
  );

/** Limits of connection pools, the same fields in `http` and `tcp`. `waiting`: what waits for a connection there. */
function poolLimits(waiting: "requests" | "connections") {
  return {
    maxConnections: z
      .int()
      .min(1)
      .optional()
      .describe(
        `Maximum connections of each worker to an endpoint, including idle ones; further ${waiting} wait for one in order of arrival, at most \`connectTimeout\`. Default: 10000.`,
      ),
    maxPendingRequests: z
      .int()
      .min(0)
      .optional()
      .describe(
        waiting === "requests"
          ? "Requests of each worker that may wait for a connection or an HTTP/2 stream to an endpoint; further requests get 503. Default: 4096."
          : "Client connections of each worker that may wait for a connection to an endpoint; further ones are closed. For HTTP, waiting requests, and `http.maxPendingRequests` takes precedence. Default: 4096.",
      ),
  };
}
