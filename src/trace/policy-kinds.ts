/**
 * The kinds of `policy` events, each with the name of its policy in `effectivePolicy`. Some differ from the kinds of the configuration,
 * because traces had them first; a policy can have two.
 */
export const EFFECTIVE_NAMES = {
  api_key: "apiKey",
  authorization: "authorization",
  backend_auth: "backendAuth",
  basic_auth: "basicAuth",
  buffer: "buffer",
  compression: "compression",
  concurrencyLimit: "concurrencyLimit",
  cors: "cors",
  csrf: "csrf",
  delay: "delay",
  directResponse: "directResponse",
  direct_response: "directResponse",
  errorPages: "errorPages",
  extAuthz: "extAuthz",
  extProc: "extProc",
  ext_auth: "extAuthz",
  ext_proc: "extProc",
  grpcWeb: "grpcWeb",
  health: "health",
  ipAccess: "ipAccess",
  jwt: "jwt",
  localRateLimit: "localRateLimit",
  maxRequestBodySize: "maxRequestBodySize",
  oidc: "oidc",
  remoteRateLimit: "remoteRateLimit",
  request_header_modifier: "requestHeaderModifier",
  request_mirror: "requestMirror",
  request_redirect: "requestRedirect",
  response_header_modifier: "responseHeaderModifier",
  retry: "retry",
  satisfy: "satisfy",
  sessionAffinity: "sessionAffinity",
  session_persistence: "sessionPersistence",
  timeout: "timeout",
  transformation: "transformation",
  transformations: "transformation",
  url_rewrite: "urlRewrite",
} as const;

export type PolicyEventKind = keyof typeof EFFECTIVE_NAMES;

/** The kind that configurations use for a policy with this name in `effectivePolicy`. */
export function writtenPolicy(effective: string): string {
  return { jwt: "jwtAuth", transformation: "transformations" }[effective] ?? effective;
}

/** A shadow policy's name in `effectivePolicy` and key in policy sets, such as `shadowJwtAuth`. */
export function shadowKey<Kind extends string>(kind: Kind): `shadow${Capitalize<Kind>}` {
  return `shadow${kind.charAt(0).toUpperCase()}${kind.slice(1)}` as `shadow${Capitalize<Kind>}`;
}
