import type { Bind, Frontend, NetworkRule, TargetedPolicy } from "../../ir/ir.ts";
import { type FrontendInput, frontendHttp, frontendTcp, proxyProtocol } from "../schema/frontend.ts";

interface NetworkRuleInput {
  readonly allow?: string | undefined;
  readonly deny?: string | undefined;
  readonly require?: string | undefined;
}

const HTTP = frontendHttp.parse({});
const TCP = frontendTcp.parse({});
const PROXY_PROTOCOL = proxyProtocol.parse({});

/** What names services, as runtime types. */
export type Calling = Pick<Frontend, "networkExtAuthz" | "accessLog" | "tracing">;

/** What holds for the connections of every bind. */
export function translateFrontend(input: FrontendInput, calling: Calling): Frontend {
  const { http = HTTP, tcp = TCP, proxyProtocol = input.proxy, connect, networkAuthorization } = input;
  return {
    maxBufferSize: http.maxBufferSize,
    maxHeadSize: http.maxHeadSize,
    maxHeaders: http.http1MaxHeaders,
    maxTargetSize: http.maxTargetSize,
    maxRequestBodySize: http.maxRequestBodySize,
    idleTimeout: http.http1IdleTimeout,
    headerReadTimeout: headerReadTimeout(http),
    streamIdleTimeout: http.streamIdleTimeout,
    minBodyRate: http.minBodyRate,
    maxConnections: http.maxConnections,
    maxConnectionDuration: http.maxConnectionDuration,
    headerCase: http.http1HeaderCase,
    ...(http.maxBufferedBytes !== undefined && { maxBufferedBytes: http.maxBufferedBytes }),
    ...(http.underscores !== undefined && { underscores: http.underscores }),
    ...(http.forwarded !== undefined && { forwarded: http.forwarded }),
    ...(http.requestId !== undefined && { requestId: http.requestId }),
    keepalives: { enabled: tcp.keepalives.enabled, time: tcp.keepalives.time },
    ...(proxyProtocol !== undefined && { proxyProtocol }),
    ...(connect !== undefined && connect.mode !== "deny" && { connect: connect.mode }),
    ...(input.tls?.handshakeTimeout !== undefined && { handshakeTimeout: input.tls.handshakeTimeout }),
    ...(networkAuthorization !== undefined && { networkAuthorization: networkAuthorization.rules.map(toRule) }),
    ...calling,
  };
}

/** The same for a bind with a `tunnelProtocol` of its own. */
export function tunnelFrontend(frontend: Frontend, tunnelProtocol: Bind["tunnelProtocol"]): Frontend {
  if (tunnelProtocol === "proxy") return { ...frontend, proxyProtocol: frontend.proxyProtocol ?? PROXY_PROTOCOL };
  return tunnelProtocol === "connect" ? { ...frontend, connect: "tunnel" } : frontend;
}

/**
 * What `frontendPolicies` sets, as the dump shows it among the targeted policies (reference 4.4): the values in force.
 */
export function dumpFrontend(input: FrontendInput, calling: Calling): TargetedPolicy[] {
  const { http, tcp, tls, connect, networkAuthorization, proxyProtocol = input.proxy } = input;
  const fields = {
    http: http && { ...http, headerReadTimeout: headerReadTimeout(http) },
    tcp,
    tls,
    connect,
    networkAuthorization,
    networkExtAuthz: calling.networkExtAuthz,
    proxyProtocol,
    accessLog: calling.accessLog,
    tracing: calling.tracing,
  };
  return Object.entries(fields).flatMap(([field, value]) =>
    value === undefined
      ? []
      : [{ key: `frontend/${field}`, name: null, target: ALL, policy: { frontend: { [field]: value } } }],
  );
}

const ALL = { gateway: { gatewayName: "default", gatewayNamespace: "default", listenerName: null } };

function toRule({ allow, deny, require }: NetworkRuleInput): NetworkRule {
  if (deny !== undefined) return { mode: "deny", expression: deny };
  if (require !== undefined) return { mode: "require", expression: require };
  return { mode: "allow", expression: allow ?? "" };
}

/** An idle connection is closed whether or not a head has begun. */
function headerReadTimeout(http: NonNullable<FrontendInput["http"]>): number {
  return Math.min(http.headerReadTimeout, http.http1IdleTimeout);
}
