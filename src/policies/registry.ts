import type { PolicyKind, PolicySet } from "../ir/policies.ts";
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
  /** In words, as stages of a trace say it (reference 4.2). */
  readonly words: string;
  /** The same in the gateway phase, behind `gateway`; default: `words`. */
  readonly gatewayWords?: string;
  /** Key in `effectivePolicy`; default: the kind. */
  readonly shownAs?: string;
}

/** Every kind of policy. A new kind does not compile until it stands here and in order.ts. */
export const REGISTRY: { readonly [Kind in PolicyKind & PlacedKind]: RegisteredPolicy<NonNullable<PolicySet[Kind]>> } =
  {
    cors: { create: cors.create, phases: ["gateway", "route"], words: "cors" },
    transformations: {
      create: conditional("transformations", transformations.create, transformations.create),
      phases: ["gateway", "route", "backend"],
      words: "transformation",
      shownAs: "transformation",
    },
    extProc: {
      create: conditional("extProc", extProc.create, extProc.create),
      phases: ["gateway", "route"],
      words: "ext proc",
    },
    extAuthz: {
      create: conditional("extAuthz", extAuthz.create, extAuthz.create),
      phases: ["gateway", "route", "backend"],
      words: "ext authz",
    },
    remoteRateLimit: {
      create: conditional("remoteRateLimit", remoteRateLimit.create, remoteRateLimit.create),
      phases: ["route"],
      words: "remote rate limit",
    },
    localRateLimit: {
      create: conditional("localRateLimit", localRateLimit.create, localRateLimit.createOne),
      phases: ["route"],
      words: "local rate limit",
    },
    requestMirror: { create: requestMirror.create, phases: ["route", "backend"], words: "request mirror" },
    csrf: { create: csrf.create, phases: ["route"], words: "csrf" },
    timeout: { create: timeout.create, phases: ["route"], words: "timeout" },
    oidc: { create: oidc.create, phases: ["gateway", "route"], words: "oidc" },
    jwtAuth: {
      create: jwtAuth.create,
      phases: ["gateway", "route"],
      words: "jwt auth",
      gatewayWords: "jwt",
      shownAs: "jwt",
    },
    basicAuth: { create: basicAuth.create, phases: ["gateway", "route"], words: "basic auth" },
    backendAuth: { create: backendAuth.create, phases: ["backend"], words: "auth" },
    apiKey: { create: apiKey.create, phases: ["gateway", "route"], words: "api key" },
    authorization: {
      create: authorization.create,
      phases: ["gateway", "route", "backend"],
      words: "authorization",
    },
    backendTLS: { create: backendTls.create, phases: ["backend"], words: "tls", shownAs: "backendTls" },
    http: { create: http.create, phases: ["backend"], words: "http" },
    tcp: { create: tcp.create, phases: ["backend"], words: "tcp" },
    backendTunnel: { create: backendTunnel.create, phases: ["backend"], words: "tunnel", shownAs: "tunnel" },
    health: { create: health.create, phases: ["backend"], words: "health" },
    sessionAffinity: { create: sessionAffinity.create, phases: ["backend"], words: "session affinity" },
    delay: { create: delay.create, phases: ["route"], words: "delay" },
    buffer: { create: buffer.create, phases: ["route"], words: "buffer" },
    retry: { create: retry.create, phases: ["route"], words: "retry" },
    requestHeaderModifier: {
      create: requestHeaderModifier.create,
      phases: ["route", "backend"],
      words: "request header modifier",
    },
    responseHeaderModifier: {
      create: responseHeaderModifier.create,
      phases: ["route", "backend"],
      words: "response header modifier",
    },
    urlRewrite: { create: urlRewrite.create, phases: ["route"], words: "url rewrite" },
    requestRedirect: { create: requestRedirect.create, phases: ["route", "backend"], words: "request redirect" },
    directResponse: {
      create: conditional("directResponse", directResponse.create, directResponse.create),
      phases: ["route"],
      words: "direct response",
    },
  };
