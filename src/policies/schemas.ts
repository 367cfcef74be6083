import { schema as apiKey } from "./api-key/schema.ts";
import { schema as authorization } from "./authorization/schema.ts";
import { schema as backendAuth } from "./backend-auth/schema.ts";
import { schema as backendTLS } from "./backend-tls/schema.ts";
import { schema as backendTunnel } from "./backend-tunnel/schema.ts";
import { schema as basicAuth } from "./basic-auth/schema.ts";
import { schema as buffer } from "./buffer/schema.ts";
import { schema as cors } from "./cors/schema.ts";
import { schema as csrf } from "./csrf/schema.ts";
import { schema as delay } from "./delay/schema.ts";
import { schema as directResponse } from "./direct-response/schema.ts";
import { schema as extAuthz } from "./ext-authz/schema.ts";
import { schema as extProc } from "./ext-proc/schema.ts";
import { schema as health } from "./health/schema.ts";
import { schema as http } from "./http/schema.ts";
import { schema as jwtAuth } from "./jwt-auth/schema.ts";
import { schema as localRateLimit } from "./local-rate-limit/schema.ts";
import { schema as oidc } from "./oidc/schema.ts";
import { schema as remoteRateLimit } from "./remote-rate-limit/schema.ts";
import { schema as requestMirror } from "./request-mirror/schema.ts";
import { schema as requestRedirect } from "./request-redirect/schema.ts";
import { schema as retry } from "./retry/schema.ts";
import { schema as sessionAffinity } from "./session-affinity/schema.ts";
import { schema as headerModifier } from "./shared/header-modifier-schema.ts";
import { schema as tcp } from "./tcp/schema.ts";
import { schema as timeout } from "./timeout/schema.ts";
import { schema as transformations } from "./transformations/schema.ts";
import { schema as urlRewrite } from "./url-rewrite/schema.ts";

/** The configuration schema of every kind of policy; a new kind does not compile until it stands here. */
export const POLICY_SCHEMAS = {
  requestHeaderModifier: headerModifier.describe("Changes headers of the request."),
  responseHeaderModifier: headerModifier.describe("Changes headers of the response."),
  urlRewrite,
  requestRedirect,
  directResponse,
  timeout,
  cors,
  csrf,
  requestMirror,
  localRateLimit,
  remoteRateLimit,
  extAuthz,
  extProc,
  transformations,
  retry,
  oidc,
  jwtAuth,
  basicAuth,
  apiKey,
  backendAuth,
  authorization,
  backendTLS,
  http,
  tcp,
  backendTunnel,
  health,
  sessionAffinity,
  delay,
  buffer,
} as const;
