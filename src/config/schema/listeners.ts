import { z } from "zod";
import { gatewayPolicies } from "../../translation/schema/policies.ts";
import {
  cipherSuites,
  hostname,
  keyExchangeGroups,
  objectName,
  port,
  tlsVersion,
} from "../../translation/schema/scalars.ts";
import { route, tcpRoute } from "./routes.ts";

const ocspStaple = z
  .string()
  .optional()
  .describe(
    "Path of an OCSP response about the certificate (DER, as `openssl ocsp -respout` writes it). Clients that ask for it get it " +
      "in the handshake until it expires. Not with `mode: dynamicCa`, and not sent to clients for whose server name there are " +
      "certificates of several types of keys.",
  );

const tlsServer = z
  .strictObject({
    mode: z
      .enum(["static", "dynamicCa"])
      .default("static")
      .describe(
        "`static`: `cert` and `key` are the server's certificate. `dynamicCa`: they are a CA that signs a certificate for each " +
          "server name (SNI) that matches the listener's hostname; see " +
          "[certificates made on demand](#certificates-made-on-demand).",
      ),
    cert: z
      .string()
      .describe("Path of the certificate chain (PEM), relative to this file. `~/` is the home directory."),
    key: z.string().describe("Path of the private key (PEM)."),
    ocspStaple,
    otherCertificates: z
      .array(
        z.strictObject({
          cert: z.string().describe("Path of the certificate chain (PEM)."),
          key: z.string().describe("Path of the private key (PEM)."),
          ocspStaple,
        }),
      )
      .optional()
      .describe(
        "Further certificates. Clients get one that is valid for the server name (SNI), of a type of key that they support; if " +
          "several are, the first. Not with `mode: dynamicCa`.",
      ),
    root: z
      .string()
      .optional()
      .describe(
        "Path of the CAs, one of which must have issued the client's certificate (mTLS). Not with `mode: dynamicCa`.",
      ),
    clientCertificates: z
      .enum(["required", "optional"])
      .default("required")
      .describe(
        "With `root`. `optional` also serves clients without a certificate or with an invalid one; expressions then read none of " +
          "the fields of `source` that come from certificates.",
      ),
    cipherSuites: cipherSuites.optional(),
    keyExchangeGroups: keyExchangeGroups.optional(),
    minTLSVersion: tlsVersion.optional().describe("Oldest TLS version. Default: `TLS_V1_2`."),
    maxTLSVersion: tlsVersion.optional().describe("Newest TLS version. Default: `TLS_V1_3`."),
    minTlsVersion: tlsVersion.optional().describe("Another spelling of `minTLSVersion`, which wins."),
    maxTlsVersion: tlsVersion.optional().describe("Another spelling of `maxTLSVersion`, which wins."),
  })
  .meta({ id: "TlsServer", description: "TLS of a listener." });

/** Where a bind or gateway listens; translated by `listeningAt` of config/translate/addresses.ts. */
const listeningAt = {
  address: z
    .union([z.string(), z.array(z.string()).min(1)])
    .optional()
    .describe(
      "Where to listen: an IPv4 or IPv6 address of this machine, `unix:/path`, or a list. Default: all addresses. Several binds may have " +
        "the same port at different addresses; see [addresses of listeners](#addresses-of-listeners).",
    ),
  socketMode: z
    .string()
    .regex(/^0?[0-7]{3}$/)
    .optional()
    .describe(
      "Permissions of the files of `unix:` addresses, octal. Default: `0600`, which lets only the same user connect.",
    ),
};

/** How connections reach a bind or gateway. */
const reachedBy = {
  tunnelProtocol: z
    .enum(["direct", "proxy", "connect"])
    .default("direct")
    .describe(
      "How connections arrive. `proxy`: with a PROXY header, see `frontendPolicies.proxyProtocol`. `connect`: in tunnels, as " +
        "with `frontendPolicies.connect.mode: tunnel`.",
    ),
  mode: z
    .enum(["standard", "internal"])
    .default("standard")
    .describe(
      "`internal`: opens no socket and serves the connections of tunnels to this port, or without `port` to every port that " +
        "has no bind.",
    ),
};

const protocol = z.enum(["HTTP", "HTTPS", "TCP", "TLS", "UDP"]);

const gatewayListener = z
  .strictObject({
    name: objectName.optional().describe("Default: `listener<index>`."),
    hostname: hostname.default("*"),
    protocol: protocol.optional().describe("Default: HTTPS with `tls`, otherwise HTTP."),
    tls: tlsServer
      .optional()
      .describe(
        "The listener's certificate. Protocol `TLS` without it routes connections by their SNI without decrypting them.",
      ),
    ...gatewayPolicies.shape,
  })
  .meta({ id: "GatewayListener", description: "One of several listeners on the port of a gateway." });

export const gateway = z
  .strictObject({
    port: port
      .optional()
      .describe(
        "TCP or UDP port. 0 lets the system choose one. Required unless `mode` is `internal` or every `address` is `unix:`.",
      ),
    ...listeningAt,
    protocol: protocol.optional().describe("Default: HTTPS with `tls`, otherwise HTTP."),
    tls: tlsServer
      .optional()
      .describe(
        "The listener's certificate. Protocol `TLS` without it routes connections by their SNI without decrypting them.",
      ),
    listeners: z
      .array(gatewayListener)
      .optional()
      .describe(
        "Several listeners on this port. With it, only `port`, `address`, `socketMode`, `tunnelProtocol` and `mode` may be set here.",
      ),
    ...reachedBy,
    ...gatewayPolicies.shape,
  })
  .meta({ id: "Gateway", description: "A port that routes attach to." });

const bindListener = z
  .strictObject({
    name: objectName.optional().describe("Default: `listener<index>`."),
    namespace: objectName.default("default").describe("Namespace of the listener, part of its key."),
    hostname: hostname.default(""),
    protocol: protocol
      .default("HTTP")
      .describe(
        "Protocol of the clients. `TLS` without `tls` passes connections to the backend without decrypting them. `UDP` has a " +
          "port of its own, whose number a bind of another protocol may have too.",
      ),
    tls: tlsServer
      .optional()
      .describe(
        "The listener's certificate. Protocol `TLS` without it routes connections by their SNI without decrypting them.",
      ),
    routes: z.array(route).optional().describe("HTTP routes. Required with HTTP and HTTPS."),
    tcpRoutes: z
      .array(tcpRoute)
      .optional()
      .describe("TCP routes. Required with TCP, TLS and UDP; with UDP they route sessions."),
    policies: gatewayPolicies.optional(),
  })
  .meta({ id: "Listener", description: "A set of host names on a port, with their routes." });

export const bind = z
  .strictObject({
    port: port
      .optional()
      .describe(
        "TCP or UDP port. 0 lets the system choose one. Required unless `mode` is `internal` or every `address` is `unix:`.",
      ),
    ...listeningAt,
    listeners: z.array(bindListener).describe("The listener is selected by the host of the request, or by SNI."),
    ...reachedBy,
  })
  .meta({ id: "Bind", description: "A port with its listeners." });

export type BindInput = z.output<typeof bind>;
export type BindListenerInput = z.output<typeof bindListener>;
export type GatewayInput = z.output<typeof gateway>;
export type GatewayListenerInput = z.output<typeof gatewayListener>;
export type TlsInput = z.output<typeof tlsServer>;
