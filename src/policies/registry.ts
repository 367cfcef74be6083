import type { Phase } from "../trace/events.ts";
import * as apiKey from "./api-key/index.ts";
import * as authorization from "./authorization/index.ts";
import * as backendAuth from "./backend-auth/index.ts";
import * as backendTls from "./backend-tls/index.ts";
import * as backendTunnel from "./backend-tunnel/index.ts";
import * as basicAuth from "./basic-auth/index.ts";
import * as buffer from "./buffer/index.ts";
import { conditional } from "./conditional/index.ts";
import * as cors from "./cors/index.ts";
import * as csrf from "./csrf/index.ts";
import * as delay from "./delay/index.ts";
import type { PolicyDeps } from "./deps.ts";
import * as directResponse from "./direct-response/index.ts";
import * as extAuthz from "./ext-authz/index.ts";
import * as extProc from "./ext-proc/index.ts";
import * as health from "./health/index.ts";
import * as http from "./http/index.ts";
import * as jwtAuth from "./jwt-auth/index.ts";
import * as localRateLimit from "./local-rate-limit/index.ts";
import * as oidc from "./oidc/index.ts";
import type { PlacedKind } from "./order.ts";
import type { PolicyKind, PolicySet } from "./policy-set.ts";
import * as remoteRateLimit from "./remote-rate-limit/index.ts";
import * as requestHeaderModifier from "./request-header-modifier/index.ts";
import * as requestMirror from "./request-mirror/index.ts";
import * as requestRedirect from "./request-redirect/index.ts";
import * as responseHeaderModifier from "./response-header-modifier/index.ts";
import * as retry from "./retry/index.ts";
import * as sessionAffinity from "./session-affinity/index.ts";
import * as tcp from "./tcp/index.ts";
import * as timeout from "./timeout/index.ts";
import * as transformations from "./transformations/index.ts";
import type { CompiledPolicy } from "./types.ts";
import * as urlRewrite from "./url-rewrite/index.ts";

export interface RegisteredPolicy<Config> {
  /** Does everything that can fail or cost; throws an Error that names the field and how to mend it. */
  readonly create: (config: Config, deps: PolicyDeps) => CompiledPolicy;
  /** Where the kind may run; its place among the others of a phase is in order.ts. */
  readonly phases: readonly Phase[];
  /** Names the stage in a trace (reference 4.2). */
  readonly traceStage: string;
  /** The same in the gateway phase, behind `gateway`; default: `words`. */
  readonly gatewayTraceStage?: string;
  /** Key in `effectivePolicy`; default: the kind. */
  readonly traceKey?: string;
}

/** Every kind of policy. A new kind does not compile until it stands here and in order.ts. */
export const REGISTRY: { readonly [Kind in PolicyKind & PlacedKind]: RegisteredPolicy<NonNullable<PolicySet[Kind]>> } =
  {
    cors: { create: cors.create, phases: ["gateway", "route"], traceStage: "cors" },
    transformations: {
      create: conditional("transformations", transformations.create, transformations.create),
      phases: ["gateway", "route", "backend"],
      traceStage: "transformation",
      traceKey: "transformation",
    },
    extProc: {
      create: conditional("extProc", extProc.create, extProc.create),
      phases: ["gateway", "route"],
      traceStage: "ext proc",
    },
    extAuthz: {
      create: conditional("extAuthz", extAuthz.create, extAuthz.create),
      phases: ["gateway", "route", "backend"],
      traceStage: "ext authz",
    },
    remoteRateLimit: {
      create: conditional("remoteRateLimit", remoteRateLimit.create, remoteRateLimit.create),
      phases: ["route"],
      traceStage: "remote rate limit",
    },
    localRateLimit: {
      create: conditional("localRateLimit", localRateLimit.create, localRateLimit.createOne),
      phases: ["route"],
      traceStage: "local rate limit",
    },
    requestMirror: { create: requestMirror.create, phases: ["route", "backend"], traceStage: "request mirror" },
    csrf: { create: csrf.create, phases: ["route"], traceStage: "csrf" },
    timeout: { create: timeout.create, phases: ["route"], traceStage: "timeout" },
    oidc: { create: oidc.create, phases: ["gateway", "route"], traceStage: "oidc" },
    jwtAuth: {
      create: jwtAuth.create,
      phases: ["gateway", "route"],
      traceStage: "jwt auth",
      gatewayTraceStage: "jwt",
      traceKey: "jwt",
    },
    basicAuth: { create: basicAuth.create, phases: ["gateway", "route"], traceStage: "basic auth" },
    backendAuth: { create: backendAuth.create, phases: ["backend"], traceStage: "auth" },
    apiKey: { create: apiKey.create, phases: ["gateway", "route"], traceStage: "api key" },
    authorization: {
      create: authorization.create,
      phases: ["gateway", "route", "backend"],
      traceStage: "authorization",
    },
    backendTLS: { create: backendTls.create, phases: ["backend"], traceStage: "tls", traceKey: "backendTls" },
    http: { create: http.create, phases: ["backend"], traceStage: "http" },
    tcp: { create: tcp.create, phases: ["backend"], traceStage: "tcp" },
    backendTunnel: { create: backendTunnel.create, phases: ["backend"], traceStage: "tunnel", traceKey: "tunnel" },
    health: { create: health.create, phases: ["backend"], traceStage: "health" },
    sessionAffinity: { create: sessionAffinity.create, phases: ["backend"], traceStage: "session affinity" },
    delay: { create: delay.create, phases: ["route"], traceStage: "delay" },
    buffer: { create: buffer.create, phases: ["route"], traceStage: "buffer" },
    retry: { create: retry.create, phases: ["route"], traceStage: "retry" },
    requestHeaderModifier: {
      create: requestHeaderModifier.create,
      phases: ["route", "backend"],
      traceStage: "request header modifier",
    },
    responseHeaderModifier: {
      create: responseHeaderModifier.create,
      phases: ["route", "backend"],
      traceStage: "response header modifier",
    },
    urlRewrite: { create: urlRewrite.create, phases: ["route"], traceStage: "url rewrite" },
    requestRedirect: { create: requestRedirect.create, phases: ["route", "backend"], traceStage: "request redirect" },
    directResponse: {
      create: conditional("directResponse", directResponse.create, directResponse.create),
      phases: ["route"],
      traceStage: "direct response",
    },
  };
