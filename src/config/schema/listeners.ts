import { z } from "zod";
import { gatewayPolicies } from "./policies.ts";
import { route, tcpRoute } from "./routes.ts";
import { cipherSuites, hostname, keyExchangeGroups, objectName, port, tlsVersion } from "./scalars.ts";

export const tlsServer = z
  .strictObject({
    mode: z
      .enum(["static", "dynamicCa"])
      .default("static")
      .describe(
        "`static`: the certificate is the one of these files. `dynamicCa`: these files are a CA, which signs a certificate " +
          "for each name that a client asks for (SNI) and that the listener's hostname fits; see " +
          "[certificates made on demand](#certificates-made-on-demand).",
      ),
    cert: z.string().describe("Path of the certificate chain (PEM), relative to this file; `~/` is the home folder."),
    key: z.string().describe("Path of the private key (PEM)."),
    root: z
      .string()
      .optional()
      .describe("Path of the CA that client certificates must come from (mTLS); not with `mode: dynamicCa`."),
    cipherSuites: cipherSuites.optional(),
    keyExchangeGroups: keyExchangeGroups.optional(),
    minTLSVersion: tlsVersion.optional().describe("Oldest version; default `TLS_V1_2`."),
    maxTLSVersion: tlsVersion.optional().describe("Newest version; default `TLS_V1_3`."),
    minTlsVersion: tlsVersion.optional().describe("Another spelling of `minTLSVersion`, which wins."),
    maxTlsVersion: tlsVersion.optional().describe("Another spelling of `maxTLSVersion`, which wins."),
  })
  .meta({ id: "TlsServer", description: "Server side of TLS." });

const protocol = z.enum(["HTTP", "HTTPS", "TCP", "TLS"]);

export const gatewayListener = z
  .strictObject({
    name: objectName.optional().describe("Default: `listener<index>`."),
    hostname: hostname.default("*"),
    protocol: protocol.optional().describe("Default: HTTPS with `tls`, else HTTP."),
    tls: tlsServer
      .optional()
      .describe("Certificate to serve with; `TLS` without it passes connections through by their SNI."),
    ...gatewayPolicies.shape,
  })
  .meta({ id: "GatewayListener", description: "One of several listeners that share a gateway's port." });

export const gateway = z
  .strictObject({
    port,
    protocol: protocol.optional().describe("Default: HTTPS with `tls`, else HTTP."),
    tls: tlsServer
      .optional()
      .describe("Certificate to serve with; `TLS` without it passes connections through by their SNI."),
    listeners: z.array(gatewayListener).optional().describe("When set, only `port` may stand beside it."),
    ...gatewayPolicies.shape,
  })
  .meta({ id: "Gateway", description: "A port that routes may belong to." });

export const bindListener = z
  .strictObject({
    name: objectName.optional().describe("Default: `listener<index>`."),
    namespace: objectName.default("default").describe("Part of the listener's key."),
    hostname: hostname.default(""),
    protocol: protocol
      .default("HTTP")
      .describe("What clients speak on this port. `TLS` without `tls` lets TLS pass to the backend."),
    tls: tlsServer
      .optional()
      .describe("Certificate to serve with; `TLS` without it passes connections through by their SNI."),
    routes: z.array(route).optional().describe("HTTP routes; required with HTTP and HTTPS."),
    tcpRoutes: z.array(tcpRoute).optional().describe("TCP routes; required with TCP and TLS."),
    policies: gatewayPolicies.optional(),
  })
  .meta({ id: "Listener", description: "Hosts of a port, with their routes." });

export const bind = z
  .strictObject({
    port: port.optional().describe("TCP port; 0 lets the system choose. Required unless `mode` is `internal`."),
    listeners: z.array(bindListener).describe("Chosen by the host that a request asks for."),
    tunnelProtocol: z
      .enum(["direct", "proxy", "connect"])
      .default("direct")
      .describe(
        "How connections arrive: `proxy` with a PROXY header, as `frontendPolicies.proxyProtocol` says it; `connect` in " +
          "tunnels, as with `frontendPolicies.connect.mode: tunnel`.",
      ),
    mode: z
      .enum(["standard", "internal"])
      .default("standard")
      .describe(
        "`internal`: no socket is opened; what comes out of tunnels to this port is served, or without `port` to every port " +
          "that no bind has.",
      ),
  })
  .meta({ id: "Bind", description: "A port with its listeners." });

export type BindInput = z.output<typeof bind>;
export type BindListenerInput = z.output<typeof bindListener>;
export type GatewayInput = z.output<typeof gateway>;
export type GatewayListenerInput = z.output<typeof gatewayListener>;
export type TlsInput = z.output<typeof tlsServer>;
