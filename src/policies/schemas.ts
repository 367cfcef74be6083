import type { BackendTunnel } from "../upstream/settings/settings.ts";
import { schema as apiKey } from "./api-key/schema.ts";
import { schema as authorization } from "./authorization/schema.ts";
import { resolve as resolveBackendAuth } from "./backend-auth/resolve.ts";
import { schema as basicAuth, resolve as resolveBasicAuth } from "./basic-auth/schema.ts";
import { schema as buffer } from "./buffer/schema.ts";
import { schema as compression } from "./compression/schema.ts";
import { schema as concurrencyLimit } from "./concurrency-limit/schema.ts";
import type { Resolver } from "./contract/resolver.ts";
import { schema as cors } from "./cors/schema.ts";
import { schema as csrf } from "./csrf/schema.ts";
import { schema as delay } from "./delay/schema.ts";
import { schema as directResponse } from "./direct-response/schema.ts";
import { schema as errorPages, resolve as resolveErrorPages } from "./error-pages/schema.ts";
import { schema as extAuthz, resolve as resolveExtAuthz } from "./ext-authz/schema.ts";
import { schema as extProc, resolve as resolveExtProc } from "./ext-proc/schema.ts";
import { schema as grpcWeb } from "./grpc-web/schema.ts";
import { schema as ipAccess, resolve as resolveIpAccess } from "./ip-access/schema.ts";
import { schema as jwtAuth, resolve as resolveJwtAuth } from "./jwt-auth/schema.ts";
import { schema as localRateLimit } from "./local-rate-limit/schema.ts";
import { schema as maxRequestBodySize } from "./max-request-body-size/schema.ts";
import { resolve as resolveOidc } from "./oidc/resolve.ts";
import { schema as oidc } from "./oidc/schema.ts";
import { schema as remoteRateLimit, resolve as resolveRemoteRateLimit } from "./remote-rate-limit/schema.ts";
import { schema as requestMirror, resolve as resolveRequestMirror } from "./request-mirror/schema.ts";
import { schema as requestRedirect } from "./request-redirect/schema.ts";
import { schema as retry } from "./retry/schema.ts";
import { resolve as resolveSatisfy, schema as satisfy } from "./satisfy/schema.ts";
import { schema as backendAuth } from "./schema/backend-auth.ts";
import { headerModifier } from "./schema/fields.ts";
import { shadowable } from "./schema/shadow.ts";
import { schema as transformations } from "./schema/transformations.ts";
import {
  type BackendTunnelInput,
  backendTLS,
  backendTunnel,
  health,
  http,
  retryBudget,
  sessionAffinity,
  tcp,
} from "./schema/upstream-settings.ts";
import { schema as sessionPersistence } from "./session-persistence/schema.ts";
import { schema as timeout } from "./timeout/schema.ts";
import { resolveTls } from "./upstream-settings/resolve.ts";
import { schema as urlRewrite } from "./url-rewrite/schema.ts";

/** For kinds that run as they are written. Does not compile for a schema that names files, URLs or services. */
const asWritten = <Config>(written: Config): Config => written;

const resolveTunnel = (written: BackendTunnelInput, resolver: Resolver): BackendTunnel => resolver.proxy(written);

/**
 * What users write for each kind, and how it becomes what runs. The keys are the list of kinds: a new one starts here, and the
 * compiler then asks for its module in `registry.ts` and its place in `order.ts`. Only threads that load configurations import
 * this file: with the schemas and zod, a worker had 4.9 to 8.9 MiB more of heap and started 290 to 450 ms later (wall time on a
 * busy machine).
 */
export const POLICY_SCHEMAS = {
  requestHeaderModifier: { schema: headerModifier.describe("Changes headers of the request."), resolve: asWritten },
  responseHeaderModifier: { schema: headerModifier.describe("Changes headers of the response."), resolve: asWritten },
  urlRewrite: { schema: urlRewrite, resolve: asWritten },
  requestRedirect: { schema: requestRedirect, resolve: asWritten },
  directResponse: { schema: directResponse, resolve: asWritten },
  timeout: { schema: timeout, resolve: asWritten },
  cors: { schema: cors, resolve: asWritten },
  csrf: { schema: shadowable(csrf), resolve: asWritten },
  requestMirror: { schema: requestMirror, resolve: resolveRequestMirror },
  localRateLimit: { schema: shadowable(localRateLimit), resolve: asWritten },
  concurrencyLimit: { schema: shadowable(concurrencyLimit), resolve: asWritten },
  remoteRateLimit: { schema: remoteRateLimit, resolve: resolveRemoteRateLimit },
  extAuthz: { schema: shadowable(extAuthz), resolve: resolveExtAuthz },
  extProc: { schema: extProc, resolve: resolveExtProc },
  transformations: { schema: transformations, resolve: asWritten },
  retry: { schema: retry, resolve: asWritten },
  oidc: { schema: oidc, resolve: resolveOidc },
  jwtAuth: { schema: shadowable(jwtAuth), resolve: resolveJwtAuth },
  basicAuth: { schema: shadowable(basicAuth), resolve: resolveBasicAuth },
  apiKey: { schema: shadowable(apiKey), resolve: asWritten },
  satisfy: { schema: shadowable(satisfy), resolve: resolveSatisfy },
  backendAuth: { schema: backendAuth, resolve: resolveBackendAuth },
  authorization: { schema: shadowable(authorization), resolve: asWritten },
  ipAccess: { schema: shadowable(ipAccess), resolve: resolveIpAccess },
  backendTLS: { schema: backendTLS, resolve: resolveTls },
  http: { schema: http, resolve: asWritten },
  tcp: { schema: tcp, resolve: asWritten },
  backendTunnel: { schema: backendTunnel, resolve: resolveTunnel },
  health: { schema: health, resolve: asWritten },
  sessionAffinity: { schema: sessionAffinity, resolve: asWritten },
  retryBudget: { schema: retryBudget, resolve: asWritten },
  delay: { schema: delay, resolve: asWritten },
  maxRequestBodySize: { schema: maxRequestBodySize, resolve: asWritten },
  buffer: { schema: buffer, resolve: asWritten },
  grpcWeb: { schema: grpcWeb, resolve: asWritten },
  errorPages: { schema: errorPages, resolve: resolveErrorPages },
  compression: { schema: compression, resolve: asWritten },
  sessionPersistence: { schema: sessionPersistence, resolve: asWritten },
} as const;
