import { REDACTED } from "../base/redaction.ts";
import { apiKey } from "./api-key/index.ts";
import { authorization } from "./authorization/index.ts";
import { backendAuth } from "./backend-auth/index.ts";
import { basicAuth } from "./basic-auth/index.ts";
import { buffer } from "./buffer/index.ts";
import { compression } from "./compression/index.ts";
import { concurrencyLimit } from "./concurrency-limit/index.ts";
import type { ShadowableKind, ShadowKey, UnshadowableKind } from "./contract/shadow.ts";
import { cors } from "./cors/index.ts";
import { csrf } from "./csrf/index.ts";
import type { CallUseOf, Hidden, Kind, Policy } from "./define/policy.ts";
import { shadowOf } from "./define/shadow.ts";
import { delay } from "./delay/index.ts";
import { directResponse } from "./direct-response/index.ts";
import { errorPages } from "./error-pages/index.ts";
import { extAuthz } from "./ext-authz/index.ts";
import { extProc } from "./ext-proc/index.ts";
import { grpcWeb } from "./grpc-web/index.ts";
import { ipAccess } from "./ip-access/index.ts";
import { jwtAuth } from "./jwt-auth/index.ts";
import { localRateLimit } from "./local-rate-limit/index.ts";
import { maxRequestBodySize } from "./max-request-body-size/index.ts";
import { oidc } from "./oidc/index.ts";
import type { PlacedKind } from "./order.ts";
import type { PolicyConfig, RequestPolicyKind, SetKey } from "./policy-set.ts";
import { remoteRateLimit } from "./remote-rate-limit/index.ts";
import { requestHeaderModifier } from "./request-header-modifier/index.ts";
import { requestMirror } from "./request-mirror/index.ts";
import { requestRedirect } from "./request-redirect/index.ts";
import { responseHeaderModifier } from "./response-header-modifier/index.ts";
import { retry } from "./retry/index.ts";
import { satisfy } from "./satisfy/index.ts";
import { sessionPersistence } from "./session-persistence/index.ts";
import { timeout } from "./timeout/index.ts";
import { transformations } from "./transformations/index.ts";
import { UPSTREAM_SETTINGS } from "./upstream-settings/index.ts";
import { urlRewrite } from "./url-rewrite/index.ts";

/**
 * One module for each schema of `schemas.ts` that is not a setting of connections: the keys of `schemas.ts` are the only list of
 * kinds, and the compiler names the one that is missing here.
 */
type Registry = {
  readonly [Name in RequestPolicyKind]: Policy<Name, PolicyConfig<Name>> & CallUseOf<Name>;
};

/** The compiler shows this text for a kind that `order.ts` does not place in any phase. */
type Placed = {
  readonly [Name in RequestPolicyKind]: Name extends PlacedKind ? unknown : `${Name} is not in order.ts`;
};

/** The compiler shows this text for a kind that `contract/shadow.ts` does not list, either as one that can be in shadow or as one that cannot. */
type ShadowDecided = {
  readonly [Name in RequestPolicyKind]: Name extends ShadowableKind | UnshadowableKind
    ? unknown
    : `${Name} is not in contract/shadow.ts`;
};

/** Every kind that works on requests, for workers: the modules, without the schemas and their library. */
export const REGISTRY: Registry = {
  cors,
  transformations,
  extProc,
  extAuthz,
  remoteRateLimit,
  localRateLimit,
  concurrencyLimit,
  requestMirror,
  csrf,
  timeout,
  oidc,
  jwtAuth,
  basicAuth,
  backendAuth,
  apiKey,
  satisfy,
  authorization,
  ipAccess,
  delay,
  maxRequestBodySize,
  buffer,
  grpcWeb,
  retry,
  requestHeaderModifier,
  responseHeaderModifier,
  urlRewrite,
  requestRedirect,
  directResponse,
  errorPages,
  compression,
  sessionPersistence,
} satisfies Placed & ShadowDecided;

/**
 * One module for each kind that users can write with `shadow: true`: all that such a kind does is in `onRequest`, and every effect goes
 * through the context.
 */
export const SHADOWS: { readonly [Key in ShadowKey]: Policy<Key, PolicyConfig<Key>> } = {
  shadowJwtAuth: shadowOf(jwtAuth),
  shadowBasicAuth: shadowOf(basicAuth),
  shadowApiKey: shadowOf(apiKey),
  shadowExtAuthz: shadowOf(extAuthz),
  shadowAuthorization: shadowOf(authorization),
  shadowLocalRateLimit: shadowOf(localRateLimit),
  shadowConcurrencyLimit: shadowOf(concurrencyLimit),
  shadowSatisfy: shadowOf(satisfy),
  shadowIpAccess: shadowOf(ipAccess),
  shadowCsrf: shadowOf(csrf),
};

/** Everything that a set can have: policies of requests, their shadows, and settings of the connections to a backend. */
export const KINDS: { readonly [Key in SetKey]: Kind<Key, PolicyConfig<Key>> & CallUseOf<Key> } = {
  ...REGISTRY,
  ...SHADOWS,
  ...UPSTREAM_SETTINGS,
};

/**
 * A policy's configuration for dumps, without secrets and with durations as texts. A kind that is not in the registry is redacted as
 * a whole. `config` must be of `kind`: dumps hold policies as plain data, which has no type that could say so.
 */
export function redactPolicy(kind: string, config: unknown, hidden: Hidden): unknown {
  return isKey(kind) ? redactKind(kind, config as PolicyConfig<typeof kind>, hidden) : REDACTED;
}

function redactKind<Kind extends SetKey>(kind: Kind, config: PolicyConfig<Kind>, hidden: Hidden): unknown {
  return KINDS[kind].redact(config, hidden);
}

function isKey(kind: string): kind is SetKey {
  return Object.hasOwn(KINDS, kind);
}
