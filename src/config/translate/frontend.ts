import type { Frontend, TargetedPolicy } from "../../ir/ir.ts";
import { type FrontendInput, frontendHttp, frontendTcp } from "../schema/frontend.ts";

const HTTP = frontendHttp.parse({});
const TCP = frontendTcp.parse({});

/** Limits of the connections of every bind. */
export function translateFrontend({ http = HTTP, tcp = TCP }: FrontendInput): Frontend {
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
    keepalives: { enabled: tcp.keepalives.enabled, time: tcp.keepalives.time },
  };
}

/**
 * What `frontendPolicies` sets, as the dump shows it among the targeted policies (reference 4.4): the values in force, times
 * in milliseconds.
 */
export function dumpFrontend({ http, tcp, tls }: FrontendInput): TargetedPolicy[] {
  const fields = {
    http: http && { ...http, headerReadTimeout: headerReadTimeout(http) },
    tcp,
    tls,
  };
  return Object.entries(fields).flatMap(([field, value]) =>
    value === undefined
      ? []
      : [{ key: `frontend/${field}`, name: null, target: ALL, policy: { frontend: { [field]: value } } }],
  );
}

const ALL = { gateway: { gatewayName: "default", gatewayNamespace: "default", listenerName: null } };

/** An idle connection is closed whether or not a head has begun. */
function headerReadTimeout(http: NonNullable<FrontendInput["http"]>): number {
  return Math.min(http.headerReadTimeout, http.http1IdleTimeout);
}
