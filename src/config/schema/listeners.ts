import { z } from "zod";
import { exactlyOne } from "../../policies/schema/checks.ts";
import { duration } from "../../policies/schema/fields.ts";
import { localSource } from "../../policies/schema/source.ts";
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

const httpsUrl = z.url({ protocol: /^https$/, error: "not a URL that begins with https://" });

const dnsHook = exactlyOne(
  z.strictObject({
    command: z
      .array(z.string().min(1))
      .min(1)
      .optional()
      .describe(
        "A program with its first arguments, called without a shell as `PROGRAM present NAME VALUE`, and with `cleanup` in place " +
          "of `present` afterwards. An exit code other than 0 is a failure.",
      ),
    url: z
      .url({ protocol: /^https?$/, error: "not a URL that begins with https:// or http://" })
      .optional()
      .describe('A server: `URL/present` and `URL/cleanup` get a POST with `{"fqdn": NAME, "value": VALUE}`.'),
    authorization: localSource("the value of Authorization")
      .optional()
      .describe(
        "With `url`: value of the header `Authorization`. Prefer an environment variable, `${NAME}`, or a file.",
      ),
    root: z
      .string()
      .optional()
      .describe("With `url`: path of the CAs of its certificate. Default: those of the runtime."),
    propagation: duration.prefault("30s").describe("Wait until the new record is visible at all servers of the zone."),
  }),
  ["command", "url"],
).meta({ id: "DnsHook", description: "Who writes and removes the TXT records of `dns-01`: a program or a server." });

const acme = z
  .strictObject({
    email: z
      .email({ error: "not an email address" })
      .optional()
      .describe("Address of the account; the server may warn there. Another address is another account."),
    directory: httpsUrl
      .default("https://acme-v02.api.letsencrypt.org/directory")
      .describe("URL of the directory of the ACME server. Default: Let's Encrypt."),
    challenge: z
      .enum(["http-01", "tls-alpn-01", "dns-01"])
      .default("tls-alpn-01")
      .describe(
        "How the server validates the hostname: by a request to port 80, by a handshake on port 443, or by a TXT record. Only " +
          "`dns-01` is possible for a wildcard.",
      ),
    storage: z
      .string()
      .min(1)
      .default("acme")
      .describe(
        "Path of a folder for keys, certificates and the account, relative to this file. Several processes may share it.",
      ),
    untilIssued: z
      .enum(["refuse", "selfSigned"])
      .default("refuse")
      .describe(
        "What clients get until the certificate has been issued: a failed handshake (`refuse`), or a self-signed certificate.",
      ),
    root: z
      .string()
      .optional()
      .describe(
        "Path of the CAs of the directory's own certificate, for a private server. Default: those of the runtime.",
      ),
    externalAccount: z
      .strictObject({
        keyId: z.string().min(1).describe("Key identifier from the CA."),
        hmacKey: localSource("the HMAC key in base64url").describe(
          "HMAC key from the CA, base64url. Prefer an environment variable, `${NAME}`, or a file.",
        ),
      })
      .optional()
      .describe("External account binding: the key that a CA gives to its customers for creating accounts."),
    dns: dnsHook.optional().describe("Required for `dns-01`."),
  })
  .check(({ value, issues }) => {
    const fault = (path: string[], message: string) =>
      issues.push({ code: "custom", path, message, input: value as unknown });
    if (value.challenge === "dns-01" && value.dns === undefined)
      fault(["dns"], "is required with challenge: dns-01; set command or url");
    if (value.challenge !== "dns-01" && value.dns !== undefined)
      fault(["dns"], `has no effect with challenge: ${value.challenge}; remove it, or use challenge: dns-01`);
  })
  .meta({
    id: "Acme",
    description: "Certificates that an ACME server issues for the listener's hostname; see [acme.md](acme.md).",
  });

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
    acme: acme
      .optional()
      .describe("The gateway orders and renews the certificate itself. In place of `cert` and `key`."),
    cert: z
      .string()
      .optional()
      .describe(
        "Path of the certificate chain (PEM), relative to this file. `~/` is the home directory. Required without `acme`.",
      ),
    key: z.string().optional().describe("Path of the private key (PEM). Required without `acme`."),
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
  .check(({ value, issues }) => {
    const { acme, cert, key } = value;
    for (const [field, set] of Object.entries({ cert, key }))
      if (acme === undefined && set === undefined)
        issues.push({ code: "invalid_type", expected: "string", path: [field], input: undefined });
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
    hostname: hostname.optional().describe("The hosts that it serves. Default: all."),
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
export type AcmeInput = z.output<typeof acme>;
export type TlsInput = z.output<typeof tlsServer>;
