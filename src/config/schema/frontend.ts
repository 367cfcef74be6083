import { z } from "zod";
import { networkSchema } from "../../policies/ext-authz/network-schema.ts";
import { condition, expression } from "../../policies/shared/cel-schema.ts";
import { duration } from "../../policies/shared/duration-schema.ts";
import { exactlyOne } from "./exactly-one.ts";
import { cipherSuites, keyExchangeGroups, network, requestIdHeader, tlsVersion } from "./scalars.ts";
import { accessLogExport, tracing } from "./telemetry.ts";

export const keepalives = z
  .strictObject({
    enabled: z.boolean().default(true).describe("Whether silent connections are probed."),
    time: duration.prefault("180s").describe("Silence before the first probe."),
    interval: duration.prefault("180s").describe("Between probes; the system's own setting counts."),
    retries: z
      .int()
      .min(1)
      .default(9)
      .describe("Probes without answer before the connection is given up; the system's own setting counts."),
  })
  .meta({ id: "Keepalives", description: "TCP keepalives." });

const size = z.int().min(0);

const forwarded = z
  .strictObject({
    mode: z
      .enum(["replace", "append", "off"])
      .default("replace")
      .describe(
        "`replace`: the client's `X-Forwarded-*` and `Forwarded` are dropped, and X-Forwarded-For, -Proto and -Host say what " +
          "the gateway sees. `append`: the same, but X-Forwarded-For continues the client's. `off`: all of them pass as they " +
          "are, except X-Forwarded-Client-Cert, which no client may send.",
      ),
    trustedProxies: z
      .array(network)
      .default([])
      .describe(
        "Addresses and networks (`10.0.0.0/8`) of proxies in front of the gateway. Their fields are kept, and X-Forwarded-For " +
          "is continued; X-Forwarded-Client-Cert is dropped all the same.",
      ),
  })
  .meta({ id: "Forwarded", description: "How backends learn where a request comes from." });

const requestId = z
  .strictObject({
    header: requestIdHeader.default("x-request-id").describe("Header that carries the id to the backend."),
    mode: z
      .enum(["preserve", "generate", "off"])
      .default("preserve")
      .describe(
        "`preserve`: the client's id if it has 1 to 128 letters, digits or `-._~:/+=@` and, where `trustedProxies` are named, " +
          "comes from one of them; else a new one. `generate`: always a new one. `off`: the header passes as it is, and " +
          "logs, traces and spans have no id.",
      ),
  })
  .meta({ id: "RequestId", description: "The id of a request in the access log, traces and spans." });

export const frontendHttp = z.strictObject({
  maxBufferSize: size.default(2_097_152).describe("Bytes of a body that may be buffered where a policy needs it."),
  maxBufferedBytes: size
    .optional()
    .describe(
      "Bytes of bodies that each worker holds for policies altogether (`buffer`, bodies that services and expressions read, " +
        "bodies kept to be sent again); a request that needs more is answered 503. Default: 67108864 (64 MiB).",
    ),
  http1MaxHeaders: z.int().min(1).max(10_000).default(100).describe("Header fields of a request; more: 431."),
  http1IdleTimeout: duration
    .prefault("10m")
    .describe("A keep-alive connection without a request is closed after this."),
  http1HeaderCase: z.enum(["lowercase", "preserve"]).default("lowercase").describe("Case of header names as sent on."),
  maxHeadSize: z.int().min(1024).default(61_440).describe("Bytes of request line and headers together; more: 431."),
  maxTargetSize: z.int().min(256).default(8192).describe("Bytes of the request target; more: 414."),
  maxRequestBodySize: size.default(0).describe("Bytes of a request body; more: 413; 0 = unlimited."),
  headerReadTimeout: duration.prefault("1m").describe("From the first byte of a head to its end; later: 408."),
  streamIdleTimeout: duration.prefault("5m").describe("A body that makes no progress for this long is ended."),
  minBodyRate: size.default(240).describe("Bytes per second a request body must average after 10 s; 0 = off."),
  maxConnections: z
    .int()
    .min(1)
    .default(50_000)
    .describe(
      "Connections per worker and bind; more are closed at once, and so are those for which the limit of open files (`ulimit -n`) leaves no room: all workers together take at most three quarters of it, so that backends can be reached and the gateway's own servers answer.",
    ),
  maxConnectionDuration: duration.prefault("0s").describe("Age at which a connection is closed gracefully; 0 = off."),
  underscores: z
    .enum(["allow", "drop", "reject"])
    .optional()
    .describe(
      "Request headers with `_` in their names, which many servers take for those with `-`: `allow` (default) passes them, " +
        "except those that look like `X-Forwarded-*`, like a header that frames messages, or like one that a policy sets, removes " +
        "or takes credentials from; " +
        "`drop` drops them; `reject` answers 400. Trailers with `_` are dropped by both.",
    ),
  forwarded: forwarded.optional().describe("X-Forwarded-For, -Proto and -Host; default: rewritten by the gateway."),
  requestId: requestId.optional().describe("Default: `x-request-id`, the client's or a new one."),
});

export const frontendTcp = z.strictObject({
  keepalives: keepalives.prefault({}).describe("TCP keepalives of client connections."),
});

/** A condition on a connection. */
const networkCondition = condition("network");

const networkRule = z
  .union([
    networkCondition.transform((allow) => ({ allow })),
    exactlyOne(
      z.strictObject({
        allow: networkCondition.optional().describe("Where there are such rules, one of them has to be true."),
        deny: networkCondition.optional().describe("True: the connection is closed, whatever else is true."),
        require: networkCondition.optional().describe("Not true: the connection is closed."),
      }),
      ["allow", "deny", "require"],
    ),
  ])
  .meta({
    id: "NetworkRule",
    description: "A CEL expression over `source`, `destination` and `env`; alone it allows.",
  });

const accessLog = z
  .strictObject({
    filter: condition("response")
      .optional()
      .describe("CEL; only requests and TCP connections for which it is true are logged."),
    add: z
      .record(z.string(), expression("response"))
      .optional()
      .describe(
        "Field name to CEL, evaluated at the end of the request or TCP connection; replaces a field of the same name.",
      ),
    remove: z.array(z.string()).optional().describe("Names of fields that are left out."),
    otlp: accessLogExport.optional(),
  })
  .meta({
    id: "AccessLog",
    description:
      "The line of the access log for each request and TCP connection. `bytes.received` and `bytes.sent` are the bytes of the bodies, without framing, or all bytes of a TCP connection; `duration` is in milliseconds, in JSON as a number. For a TCP connection, expressions have no `request`.",
  });

const networkAuthorization = z
  .strictObject({
    rules: z
      .array(networkRule)
      .describe(
        "As in `authorization`: a `deny` rule that cannot be evaluated denies, and any other rule then does not match.",
      ),
  })
  .meta({
    id: "NetworkAuthorization",
    description: "Who may connect; asked once per connection, after the PROXY header and the TLS handshake.",
  });

const tls = z.strictObject({
  handshakeTimeout: duration
    .optional()
    .describe("From the accepted connection to the end of its TLS handshake; default: 15s."),
  keyExchangeGroups: keyExchangeGroups.optional(),
  minVersion: tlsVersion.optional().describe("Oldest version; default `TLS_V1_2`."),
  maxVersion: tlsVersion.optional().describe("Newest version; default `TLS_V1_3`."),
  cipherSuites: cipherSuites.optional(),
});

export const proxyProtocol = z
  .strictObject({
    version: z.enum(["v1", "v2", "all"]).default("v2").describe("Versions of the header that are accepted."),
    mode: z
      .enum(["strict", "optional"])
      .default("strict")
      .describe("Whether connections without a header are closed, or served with the addresses of their socket."),
  })
  .meta({
    id: "ProxyProtocol",
    description: "Connections begin with a PROXY header, by which a load balancer in front says who the client is.",
  });

const connect = z
  .strictObject({
    mode: z
      .enum(["deny", "route", "tunnel"])
      .describe(
        "`deny`: 405; `route`: routed like other requests, then bytes both ways; `tunnel`: connections speak nothing but " +
          "CONNECT, and what comes out of a tunnel is served by the bind of the port that was asked for, else by the internal " +
          "bind without port.",
      ),
  })
  .meta({ id: "Connect", description: "What becomes of CONNECT requests." });

const ALIASES = [
  ["proxy", "proxyProtocol"],
  ["logging", "accessLog"],
] as const;

export const frontendPolicies = z
  .strictObject({
    http: frontendHttp.optional().describe("Limits and timeouts of client connections."),
    tcp: frontendTcp.optional().describe("Sockets of client connections."),
    tls: tls.optional().describe("For listeners with `tls` that do not say it themselves."),
    connect: connect.optional().describe("What becomes of CONNECT requests; default: `deny`."),
    networkAuthorization: networkAuthorization.optional(),
    networkExtAuthz: networkSchema.optional(),
    proxyProtocol: proxyProtocol.optional(),
    accessLog: accessLog.optional(),
    tracing: tracing.optional(),
    logging: accessLog.optional().describe("The same as `accessLog`."),
    proxy: proxyProtocol.optional().describe("The same as `proxyProtocol`."),
  })
  .check(({ value, issues }) => {
    for (const [alias, name] of ALIASES) {
      if (value[alias] === undefined || value[name] === undefined) continue;
      issues.push({
        code: "custom",
        input: value[alias],
        path: [alias],
        message: `is another name of ${name}, which is set too; remove one of them`,
      });
    }
  })
  .describe("Settings of all client connections.");

export type FrontendInput = z.output<typeof frontendPolicies>;
