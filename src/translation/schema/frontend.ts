import { z } from "zod";
import { networkSchema } from "../../policies/ext-authz/network-schema.ts";
import { schema as ipAccess } from "../../policies/ip-access/schema.ts";
import { expression, ruleConditions } from "../../policies/schema/cel.ts";
import { checking, exactlyOne } from "../../policies/schema/checks.ts";
import { duration, size } from "../../policies/schema/fields.ts";
import { cipherSuites, keyExchangeGroups, network, requestIdHeader, tlsVersion } from "./scalars.ts";
import { accessLogExport, logFilter, tracing } from "./telemetry.ts";

export const keepalives = z
  .strictObject({
    enabled: z.boolean().default(true).describe("Probes idle connections."),
    time: duration.prefault("180s").describe("Idle time before the first probe."),
    interval: duration
      .prefault("180s")
      .describe("Time between probes. Accepted for compatibility; the operating system's setting is used."),
    retries: z
      .int()
      .min(1)
      .default(9)
      .describe(
        "Unanswered probes before the connection is closed. Accepted for compatibility; the operating system's setting is used.",
      ),
  })
  .meta({ id: "Keepalives", description: "TCP keepalive probes." });

/** Of flow control (RFC 9113 6.9.1). */
const window = (min: number) => size({ min, max: 2_147_483_647 });
/** Bytes. A larger header section would hold up the other requests of its connection for too long. */
const MAX_HEADER_SIZE = 1_048_576;

const forwarded = z
  .strictObject({
    mode: z
      .enum(["replace", "append", "off"])
      .default("replace")
      .describe(
        "`replace`: drops `X-Forwarded-*` and `Forwarded` of the client and sets X-Forwarded-For, -Proto and -Host from the " +
          "connection. `append`: the same, but adds to the client's X-Forwarded-For. `off`: passes them unchanged, except " +
          "X-Forwarded-Client-Cert, which is always dropped.",
      ),
    trustedProxies: z
      .array(network)
      .default([])
      .describe(
        "Addresses and networks (`10.0.0.0/8`) of proxies in front of the gateway. Their fields are kept, and the gateway adds " +
          "to their X-Forwarded-For. Compared with the TCP peer, not with an address in a PROXY header: listing a load balancer that only forwards bytes means trusting the fields of all its clients. X-Forwarded-Client-Cert is always dropped.",
      ),
  })
  .meta({ id: "Forwarded", description: "What the gateway tells backends about the origin of a request." });

const requestId = z
  .strictObject({
    header: requestIdHeader.default("x-request-id").describe("Header that carries the id to the backend."),
    mode: z
      .enum(["preserve", "generate", "off"])
      .default("preserve")
      .describe(
        "`preserve`: keeps the client's id if it consists of 1 to 128 letters, digits or `-._~:/+=@` and, when `trustedProxies` " +
          "is set, comes from one of them; otherwise generates one. `generate`: always generates one. `off`: passes the header " +
          "unchanged; logs, traces and spans have no id.",
      ),
  })
  .meta({ id: "RequestId", description: "The id of a request in the access log, traces and spans." });

export const frontendHttp = z.strictObject({
  maxBufferSize: size()
    .prefault("2MiB")
    .describe(
      "Largest body in bytes that policies may buffer. If a policy has to read a longer one, the request gets 413, or the response is replaced by 502.",
    ),
  maxBufferedBytes: size()
    .optional()
    .describe(
      "Bytes of request and response bodies that each worker may hold in memory at a time, for `buffer`, for services and " +
        "expressions that read bodies, and for retries. When they are used up, bodies that arrive too slowly give way (408), " +
        "otherwise those of the client address or the connection that holds most (503); a request that still finds no room " +
        "gets 503. Default: 67108864 (64 MiB).",
    ),
  http1MaxHeaders: z
    .int()
    .min(1)
    .max(10_000)
    .default(100)
    .describe("Maximum number of header fields of a request. Requests with more get 431."),
  http1IdleTimeout: duration
    .prefault("10m")
    .describe("Idle time after which a connection without a request is closed, also one of HTTP/2."),
  http1HeaderCase: z
    .enum(["lowercase", "preserve"])
    .default("lowercase")
    .describe("Case of header names that are sent to backends and clients."),
  maxHeadSize: size({ min: 1024 })
    .prefault("60KiB")
    .describe("Largest request head (request line and headers) in bytes. Larger ones get 431."),
  maxTargetSize: size({ min: 256 }).prefault("8KiB").describe("Longest request target in bytes. Longer ones get 414."),
  maxRequestBodySize: size().prefault(0).describe("Largest request body in bytes. Larger ones get 413. 0: unlimited."),
  http2WindowSize: window(1024)
    .optional()
    .describe(
      "Flow-control window of an HTTP/2 stream: bytes that a client may send before they are forwarded, which are held in memory " +
        "meanwhile. Default: 262144 (256 KiB), which grows up to 4 MiB while bytes are forwarded fast, by at most 32 MiB in each " +
        "worker; 64 KiB for connections that are opened while the worker is short of memory or holds many unread bytes.",
    ),
  http2ConnectionWindowSize: window(65_535)
    .optional()
    .describe(
      "Flow-control window of all streams of an HTTP/2 connection together, in bytes. If it is set, windows of streams do not " +
        "grow. Default: 1048576 (1 MiB), plus the growth of the streams' windows; 256 KiB for connections that are opened while " +
        "the worker is short of memory or holds many unread bytes.",
    ),
  http2FrameSize: size({ min: 16_384, max: 16_777_215 })
    .optional()
    .describe("Largest payload of an HTTP/2 frame in bytes. Default: 16384."),
  http2MaxHeaderSize: size({ min: 1024, max: MAX_HEADER_SIZE })
    .optional()
    .describe(
      "Largest header section of an HTTP/2 request in bytes: names, values, and 32 for each field. Larger ones get 431. " +
        "Default: `maxHeadSize`.",
    ),
  http2MaxConcurrentStreams: z
    .int()
    .min(1)
    .max(10_000)
    .optional()
    .describe(
      "Maximum number of concurrent requests on an HTTP/2 connection. Further ones are rejected. Default: 100.",
    ),
  http2KeepaliveInterval: duration
    .optional()
    .describe("Time without a frame from an HTTP/2 client after which it is sent a PING. Default: off."),
  http2KeepaliveTimeout: duration
    .optional()
    .describe("Time to acknowledge that PING, after which the connection is closed. Default: 20s."),
  headerReadTimeout: duration
    .prefault("1m")
    .describe("Time from the first byte of a head to its end. Slower requests get 408."),
  streamIdleTimeout: duration.prefault("5m").describe("Time without progress after which a body is aborted."),
  minBodyRate: size()
    .prefault(240)
    .describe(
      "Bytes per second that a request body must keep up after its first 10 s; bytes sent earlier make up for at most 30 s of silence. Over HTTP/2 only until its response begins, and " +
        "not for gRPC, whose clients may keep a stream open without a message. 0: off.",
    ),
  maxConnections: z
    .int()
    .min(1)
    .default(50_000)
    .describe(
      "Maximum number of connections per worker and bind; further ones are closed at once. Besides, of the limit of open files " +
        "(`ulimit -n`), 512 are reserved, so that the admin server stays reachable; client connections may use up to three quarters " +
        "of the rest, and so may backend connections.",
    ),
  maxConnectionDuration: duration.prefault("0s").describe("Age at which a connection is closed gracefully. 0: off."),
  underscores: z
    .enum(["allow", "drop", "reject"])
    .optional()
    .describe(
      "Request headers with `_` in their names, which many servers treat like `-`. `allow` (default) passes them, except " +
        "those that look like `X-Forwarded-*`, like a header that frames messages, or like one that a policy sets, removes or " +
        "takes credentials from. `drop` drops them. `reject` responds 400. `drop` and `reject` also drop such trailers.",
    ),
  forwarded: forwarded.optional().describe("X-Forwarded-For, -Proto and -Host. Default: set by the gateway."),
  requestId: requestId.optional().describe("Default: `x-request-id`, the client's or a generated one."),
});

export const frontendTcp = z.strictObject({
  keepalives: keepalives.prefault({}).describe("TCP keepalives of client connections."),
});

const frontendUdp = z.strictObject({
  idleTimeout: duration
    .prefault("60s")
    .describe("Time without a datagram in either direction after which a session ends."),
  maxSessions: z
    .int()
    .min(1)
    .default(10_000)
    .describe(
      "Maximum number of sessions per worker and bind. Beyond that, a new client replaces one that has been silent for at least 5 s, or one of " +
        "an address that has more than a quarter of all sessions; if there is no such client, its datagrams are dropped.",
    ),
  maxDatagramSize: size({ min: 1, max: 65_507 })
    .prefault(65_507)
    .describe("Largest datagram of a client in bytes. Larger ones are dropped."),
});

/** Conditions on a connection. */
const { allow, deny, require } = ruleConditions("network", "connections");

const networkRule = z
  .union([
    allow.transform((expression) => ({ allow: expression })),
    exactlyOne(
      z.strictObject({
        allow: allow.optional().describe("If there are allow rules, one of them must be true."),
        deny: deny.optional().describe("If true, the connection is closed, whatever the other rules say."),
        require: require.optional().describe("Unless true, the connection is closed."),
      }),
      ["allow", "deny", "require"],
    ),
  ])
  .meta({
    id: "NetworkRule",
    description:
      "A CEL expression over `source`, `destination` and `env`. Written without `allow`, `deny` or `require` it is an allow rule.",
  });

const accessLog = z
  .strictObject({
    filter: logFilter
      .optional()
      .describe("CEL. Only requests and TCP connections for which it is true, or fails, are logged."),
    add: z
      .record(z.string(), expression("response"))
      .optional()
      .describe(
        "Field name to CEL, evaluated at the end of the request or TCP connection. Replaces a field of the same name.",
      ),
    remove: z.array(z.string()).optional().describe("Names of fields to leave out."),
    otlp: accessLogExport.optional(),
  })
  .meta({
    id: "AccessLog",
    description:
      "The access log: one line for each request, TCP connection and UDP session. `bytes.received` and `bytes.sent` count body bytes without framing, or all bytes of a TCP connection. `duration` is in milliseconds, in JSON a number. Expressions about a TCP connection have no `request`.",
  });

const networkAuthorization = z
  .strictObject({
    rules: z
      .array(networkRule)
      .describe("As in `authorization`: a `deny` rule that fails denies; any other rule that fails does not match."),
  })
  .meta({
    id: "NetworkAuthorization",
    description:
      "Allows or denies connections by CEL rules, once per connection, after the PROXY header and the TLS handshake.",
  });

/** ALPN names as bytes, the form of the reference: `[104, 50]` is `h2`. */
const protocolBytes = z.array(z.int().min(0).max(255)).transform((bytes) => String.fromCharCode(...bytes));

const tls = z.strictObject({
  handshakeTimeout: duration
    .optional()
    .describe("Time from accepting a connection to the end of its TLS handshake. Default: 15s."),
  keyExchangeGroups: keyExchangeGroups.optional(),
  minVersion: tlsVersion.optional().describe("Oldest TLS version. Default: `TLS_V1_2`."),
  maxVersion: tlsVersion.optional().describe("Newest TLS version. Default: `TLS_V1_3`."),
  cipherSuites: cipherSuites.optional(),
  alpn: z
    .array(z.union([z.string(), protocolBytes]).pipe(z.enum(["h2", "http/1.1"])))
    .min(1)
    .optional()
    .describe(
      "Protocols that HTTPS listeners offer (ALPN), in order of preference: `h2`, `http/1.1`. Default: both. Also accepts each as a " +
        "list of its bytes.",
    ),
});

export const proxyProtocol = z
  .strictObject({
    version: z.enum(["v1", "v2", "all"]).default("v2").describe("Versions of the header that are accepted."),
    mode: z
      .enum(["strict", "optional"])
      .default("strict")
      .describe("Whether connections without a header are closed, or served with the addresses of their socket."),
    from: z
      .array(network)
      .min(1)
      .optional()
      .describe(
        "Addresses and networks (`10.0.0.0/8`) of the load balancers that may send the header; the header sets the client address in rules, limits and logs. With `strict`, connections from other peers are closed. With `optional`, which requires `from`, they are served with the address of their socket, and a PROXY header from them is an invalid request (400). Default: all.",
      ),
  })
  .refine(({ mode, from }) => mode === "strict" || from !== undefined, {
    path: ["mode"],
    message:
      "set from to the networks of the load balancers, such as from: [10.0.0.0/8]; otherwise any client could claim any address",
  })
  .meta({
    id: "ProxyProtocol",
    description: "Connections begin with a PROXY header, in which a load balancer passes the address of the client.",
  });

const connect = z
  .strictObject({
    mode: z
      .enum(["deny", "route", "tunnel"])
      .describe(
        "`deny`: responds 405. `route`: routes CONNECT like other requests, then passes bytes both ways. `tunnel`: clients may " +
          "only open tunnels; a connection inside a tunnel is served by the bind of the requested port, else by the internal " +
          "bind without a port.",
      ),
  })
  .meta({ id: "Connect", description: "How CONNECT requests are handled." });

/** Other names of fields, and the names. */
export const FRONTEND_ALIASES = [
  ["proxy", "proxyProtocol"],
  ["logging", "accessLog"],
] as const;

export const frontendPolicies = z
  .strictObject({
    http: frontendHttp.optional().describe("Limits and timeouts of client connections."),
    tcp: frontendTcp.optional().describe("Socket options of client connections."),
    udp: frontendUdp.optional().describe("Limits of UDP sessions: the datagrams of one client address and port."),
    tls: tls.optional().describe("Defaults for listeners with `tls`."),
    connect: connect.optional().describe("How CONNECT requests are handled. Default: `deny`."),
    ipAccess: ipAccess
      .describe(
        "Allows or denies connections by the address of the client, of every protocol: TCP, TLS, HTTP and UDP, and connections inside tunnels. Denied ones are closed without a response, before their TLS handshake. The client is the peer of the connection, or the address of its PROXY header: behind other proxies, `ipAccess` of routes reads the address that they report. `deny` beats `allow`; files are watched.",
      )
      .optional(),
    networkAuthorization: networkAuthorization.optional(),
    networkExtAuthz: networkSchema.optional(),
    proxyProtocol: proxyProtocol.optional(),
    accessLog: accessLog.optional(),
    tracing: tracing.optional(),
    logging: accessLog.optional().describe("Another name of `accessLog`."),
    proxy: proxyProtocol.optional().describe("Another name of `proxyProtocol`."),
  })
  .check(
    checking((value) =>
      FRONTEND_ALIASES.filter(([alias, name]) => value[alias] !== undefined && value[name] !== undefined).map(
        ([alias, name]) => ({
          path: [alias],
          message: `is another name of ${name}, which is set too; remove one of them`,
        }),
      ),
    ),
  )
  .describe("Settings of all client connections.");

export type FrontendInput = z.output<typeof frontendPolicies>;
