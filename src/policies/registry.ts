import { apiKey } from "./api-key/index.ts";
import { authorization } from "./authorization/index.ts";
import { backendAuth } from "./backend-auth/index.ts";
import { backendTLS } from "./backend-tls/index.ts";
import { backendTunnel } from "./backend-tunnel/index.ts";
import { basicAuth } from "./basic-auth/index.ts";
import { buffer } from "./buffer/index.ts";
import { cors } from "./cors/index.ts";
import { csrf } from "./csrf/index.ts";
import { delay } from "./delay/index.ts";
import { directResponse } from "./direct-response/index.ts";
import { extAuthz } from "./ext-authz/index.ts";
import { extProc } from "./ext-proc/index.ts";
import { health } from "./health/index.ts";
import { http } from "./http/index.ts";
import { jwtAuth } from "./jwt-auth/index.ts";
import { localRateLimit } from "./local-rate-limit/index.ts";
import { oidc } from "./oidc/index.ts";
import type { PlacedKind } from "./order.ts";
import type { Policy } from "./policy.ts";
import type { PolicyConfig, PolicyKind } from "./policy-set.ts";
import { remoteRateLimit } from "./remote-rate-limit/index.ts";
import { requestHeaderModifier } from "./request-header-modifier/index.ts";
import { requestMirror } from "./request-mirror/index.ts";
import { requestRedirect } from "./request-redirect/index.ts";
import { responseHeaderModifier } from "./response-header-modifier/index.ts";
import { retry } from "./retry/index.ts";
import { sessionAffinity } from "./session-affinity/index.ts";
import { tcp } from "./tcp/index.ts";
import { timeout } from "./timeout/index.ts";
import { transformations } from "./transformations/index.ts";
import { urlRewrite } from "./url-rewrite/index.ts";

/** The modules by kind. */
export type Registry = { readonly [Kind in PolicyKind & PlacedKind]: Policy<Kind, PolicyConfig<Kind>> };

/** Every kind of policy. A new kind does not compile until it stands here, in `schemas.ts` and in `order.ts`. */
export const REGISTRY: Registry = {
  cors,
  transformations,
  extProc,
  extAuthz,
  remoteRateLimit,
  localRateLimit,
  requestMirror,
  csrf,
  timeout,
  oidc,
  jwtAuth,
  basicAuth,
  backendAuth,
  apiKey,
  authorization,
  backendTLS,
  http,
  tcp,
  backendTunnel,
  health,
  sessionAffinity,
  delay,
  buffer,
  retry,
  requestHeaderModifier,
  responseHeaderModifier,
  urlRewrite,
  requestRedirect,
  directResponse,
};
