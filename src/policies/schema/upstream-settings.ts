/**
 * Settings of connections to a backend and of the choice among its endpoints. Users write them among its policies (reference
 * 3.21, 3.23, 3.26, 3.27), but connection pools and balancers apply them. Defaults that are not given here are those of
 * `config.backend`, which are applied where targets are translated.
 */
import { z } from "zod";
import { key } from "./basic-backend-auth.ts";
import { condition, expression } from "./cel.ts";
import { exactlyOne } from "./checks.ts";
import { duration, service } from "./fields.ts";
import { fileName } from "./source.ts";

export const backendTLS = z
  .strictObject({
    cert: fileName.optional().describe("PEM file of the gateway's client certificate; requires `key`."),
    key: fileName.optional().describe("PEM file of the certificate's private key."),
    root: fileName
      .optional()
      .describe(
        "PEM file of the CAs that verify the backend's certificate. Default: the CAs of the system and those of Node.js.",
      ),
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
      .describe(
        "Time to establish a connection, with its TLS handshake; after it, the request tries another endpoint of the backend, or gets 504. Default: that of `config.backend`, but 1s while another endpoint can be tried.",
      ),
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
        "HTTP version of calls to the backend; `HTTP/2.0` without TLS is h2c with prior knowledge. Default: from `appProtocols` of the service. Otherwise, requests of clients inside TLS are sent in HTTP/1.1, except that gRPC is sent in HTTP/2; requests of plaintext clients are sent in the client's own version. HTTP/2 is then a guess: nothing is sent before the backend accepts it; if it does not, HTTP/1.1 is used, and this does not count as a failure of the endpoint. Set the version for backends that speak only HTTP/2.",
      ),
    requestTimeout: duration
      .optional()
      .describe("Time from the call to the response's head, then 504; replaces `timeout.backendRequestTimeout`."),
    ...poolLimits("requests"),
    maxRequests: z
      .int()
      .min(1)
      .optional()
      .describe(
        "Requests of all workers that may be in progress at an endpoint, including those that wait for a connection and, until they end, upgraded ones. Further requests go to other endpoints of the backend; if all are full, they get 503. Default: unlimited.",
      ),
    maxRetries: z
      .int()
      .min(0)
      .optional()
      .describe(
        "Retried requests of all workers that may be in progress to the backend; at that number, failed attempts are not retried, so that retries do not add to the load of a failing backend. Default: unlimited.",
      ),
  })
  .describe("HTTP settings of calls to a backend: version, timeout and limits.");

const share = z.number().min(0).max(1);

/** Shorter times are usually a wrong unit, and would load the endpoints with probes. */
const MIN_PROBE_MS = 100;
const probeTime = duration.refine((time) => time >= MIN_PROBE_MS, { message: `must be at least ${MIN_PROBE_MS}ms` });
const threshold = z.int().min(1).max(100);

const probe = z.strictObject({
  http: z
    .strictObject({
      path: z
        .string()
        .regex(/^\/[!-~]*$/, { message: "must begin with / and have no spaces" })
        .default("/")
        .describe("Path and query of the probe."),
      host: z
        .string()
        .regex(/^[A-Za-z0-9._:[\]-]+$/, { message: "write a host name, optionally with a port" })
        .optional()
        .describe("Value of `Host`. Default: the name or address of the endpoint."),
      expectedStatuses: z
        .array(z.int().min(100).max(599))
        .min(1)
        .optional()
        .describe("Statuses of a healthy endpoint. Default: 200 to 399."),
    })
    .optional()
    .describe("Sends `GET` requests."),
  tcp: z
    .strictObject({})
    .optional()
    .describe("Opens connections, with the TLS handshake if the backend has `backendTLS`: `tcp: {}`."),
  grpc: z
    .strictObject({
      service: z.string().default("").describe("Name of the service to ask about. Default: the server as a whole."),
    })
    .optional()
    .describe("Calls `grpc.health.v1.Health/Check`; an endpoint that responds `SERVING` is healthy."),
  port: z.int().min(1).max(65535).optional().describe("Port to probe. Default: the port of the endpoint."),
  interval: probeTime
    .prefault("5s")
    .describe("Time between the starts of two probes of an endpoint; varies by up to a tenth."),
  timeout: probeTime.prefault("1s").describe("Time for one probe, connecting included."),
  unhealthyThreshold: threshold.default(3).describe("Failed probes in a row that make an endpoint unhealthy."),
  healthyThreshold: threshold.default(1).describe("Successful probes in a row that make it healthy again."),
});

const active = exactlyOne(probe, ["http", "tcp", "grpc"]).meta({
  id: "ActiveHealthCheck",
  description:
    "Probes each endpoint, even without traffic; an unhealthy one gets no calls until its probes succeed again. One worker probes for all. Probes use separate connections, made with `backendTLS`, `tcp`, `http.version` and `backendTunnel` of the backend, and get its `backendAuth`, `transformations` and `requestHeaderModifier`. A new endpoint gets calls at once; its first probe follows within a second and decides alone, later ones by the thresholds. A reload that keeps the endpoint and the check keeps the state. While all endpoints of a backend are unhealthy or evicted, all are used, so a wrong path cannot stop all traffic; for the same reason, a backend with one endpoint is always used.",
});

export const health = z
  .strictObject({
    unhealthyExpression: condition("response", {
      true: "counts every call as failed",
      false: "counts no response as failed",
    })
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
    active: active
      .optional()
      .describe("Probes each endpoint, even without traffic. Default: endpoints are judged by calls alone."),
  })
  .describe(
    "Outlier detection: what counts as a failed call, and when a failing endpoint is evicted, so that it gets no requests for a while; and active health checks. If all endpoints are evicted or unhealthy, they are used anyway. Each worker thread counts its own calls; an eviction applies to all workers.",
  );

export const sessionAffinity = z
  .strictObject({
    source: expression("request").describe(
      'CEL over the request that returns a string or bytes, such as `request.headers["x-user"]`; if it fails or is empty, any endpoint is chosen.',
    ),
  })
  .describe(
    "Sends requests with the same value to the same endpoint of a pool or `service` (rendezvous hashing). If an endpoint is added, removed or evicted, only its share of requests moves. Retries go to any endpoint.",
  );

const HOUR_MS = 3_600_000;
/** At most an hour, as in GEP-3388. */
const budgetInterval = (least: number, name: string) =>
  duration.refine((time) => time >= least && time <= HOUR_MS, { message: `must be between ${name} and 1h` });

export const retryBudget = z
  .strictObject({
    percent: z
      .number()
      .min(0)
      .max(100)
      .default(20)
      .describe("Maximum share of retries in all requests to the backend, retries included. Default: 20."),
    interval: budgetInterval(1000, "1s")
      .prefault("10s")
      .describe("Time over which requests and retries are counted. Default: 10s."),
    minRetryRate: z
      .strictObject({
        count: z.int().min(1).max(1_000_000).default(10).describe("Default: 10."),
        interval: budgetInterval(10, "10ms").prefault("1s").describe("Default: 1s."),
      })
      .prefault({})
      .describe(
        "Retries that are always allowed, whatever their share: otherwise a backend with few requests would get none.",
      ),
  })
  .describe(
    "Limits retries by the `retry` policy to a share of the requests to the backend, so that they do not multiply the load of a failing backend (GEP-3388). Failed attempts beyond it are not retried: clients get the original failure, as from Envoy, because its status, `retry-after` or gRPC status says more than a 503 from the gateway. All routes to one backend with the same budget share it; each worker thread counts its own requests.",
  );

/** Limits of connection pools, the same fields in `http` and `tcp`. `waiting`: what waits for a connection there. */
function poolLimits(waiting: "requests" | "connections") {
  return {
    maxConnections: z
      .int()
      .min(1)
      .optional()
      .describe(
        `Maximum connections to an endpoint, including idle ones. Each worker may open an equal part of them, at least one; further ${waiting} wait for one in order of arrival, at most \`connectTimeout\`. Default: 10000 for each worker.`,
      ),
    maxPendingRequests: z
      .int()
      .min(0)
      .optional()
      .describe(
        waiting === "requests"
          ? "Requests of all workers that may wait for a connection or an HTTP/2 stream to an endpoint; further requests get 503. Default: 4096 for each worker."
          : "Client connections of all workers that may wait for a connection to an endpoint; further ones are closed. For HTTP, waiting requests, and `http.maxPendingRequests` takes precedence. Default: 4096 for each worker.",
      ),
  };
}
