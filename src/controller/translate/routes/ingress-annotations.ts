/**
 * Annotations by which other ingress controllers are configured. None of them is applied, and an Ingress that has one is not served
 * as if it had none: an allow list or a login that is left out would open what it protects.
 */

/** Prefixes of annotations of other controllers. */
const FOREIGN =
  /^(?:(?:[a-z0-9-]+\.)*ingress\.kubernetes\.io|ingress\.cilium\.io|(?:configuration\.)?konghq\.com|projectcontour\.io|nginx\.(?:org|com)|haproxy\.org|haproxy-ingress\.github\.io)\/|^kubernetes\.io\/ingress\.allow-http$/;

/** What does the same here, by the name of an annotation without the prefix. */
const INSTEAD: Readonly<Record<string, string>> = {
  "rewrite-target": "an HTTPRoute with the filter URLRewrite (ReplacePrefixMatch)",
  "use-regex": "an HTTPRoute with matches of type RegularExpression",
  "app-root": "an HTTPRoute with an Exact match of / and the filter RequestRedirect",
  "ssl-redirect": "an HTTPRoute of the HTTP listener with the filter RequestRedirect (scheme: https)",
  "force-ssl-redirect": "an HTTPRoute of the HTTP listener with the filter RequestRedirect (scheme: https)",
  "permanent-redirect": "an HTTPRoute with the filter RequestRedirect (statusCode: 301)",
  "permanent-redirect-code": "statusCode of the filter RequestRedirect of an HTTPRoute",
  "temporal-redirect": "an HTTPRoute with the filter RequestRedirect (statusCode: 302)",
  "from-to-www-redirect": "an HTTPRoute of the other hostname with the filter RequestRedirect",
  "server-alias": "another rule with that host, or hostnames of an HTTPRoute",
  canary: "an HTTPRoute with two backendRefs and their weights",
  "canary-weight": "weights of the backendRefs of an HTTPRoute",
  "canary-by-header": "an HTTPRoute with a match of headers",
  "canary-by-header-value": "an HTTPRoute with a match of headers",
  "canary-by-cookie": "an HTTPRoute with a RegularExpression match of the header cookie",
  "enable-cors": "an HTTPRoute with the filter CORS",
  "cors-allow-origin": "allowOrigins of the filter CORS of an HTTPRoute",
  "cors-allow-methods": "allowMethods of the filter CORS of an HTTPRoute",
  "cors-allow-headers": "allowHeaders of the filter CORS of an HTTPRoute",
  "cors-allow-credentials": "allowCredentials of the filter CORS of an HTTPRoute",
  "cors-expose-headers": "exposeHeaders of the filter CORS of an HTTPRoute",
  "cors-max-age": "maxAge of the filter CORS of an HTTPRoute",
  "auth-type": "traffic.basicAuth of a TracegatePolicy for the Ingress",
  "auth-secret": "traffic.basicAuth of a TracegatePolicy for the Ingress",
  "auth-realm": "traffic.basicAuth.realm of a TracegatePolicy for the Ingress",
  "auth-url": "traffic.extAuthz of a TracegatePolicy for the Ingress",
  "auth-signin": "traffic.oidc or traffic.extAuthz of a TracegatePolicy for the Ingress",
  "auth-response-headers": "traffic.extAuthz of a TracegatePolicy for the Ingress",
  "auth-tls-secret": "spec.tls.frontend.default.validation of the Gateway",
  "auth-tls-verify-client": "spec.tls.frontend.default.validation of the Gateway",
  "whitelist-source-range": "traffic.ipAccess.allow of a TracegatePolicy for the Ingress",
  "allowlist-source-range": "traffic.ipAccess.allow of a TracegatePolicy for the Ingress",
  "denylist-source-range": "traffic.ipAccess.deny of a TracegatePolicy for the Ingress",
  "limit-rps": "traffic.localRateLimit of a TracegatePolicy for the Ingress",
  "limit-rpm": "traffic.localRateLimit of a TracegatePolicy for the Ingress",
  "proxy-body-size": "traffic.maxRequestBodySize of a TracegatePolicy for the Ingress",
  "client-max-body-size": "traffic.maxRequestBodySize of a TracegatePolicy for the Ingress",
  "proxy-read-timeout": "traffic.timeout of a TracegatePolicy for the Ingress",
  "proxy-send-timeout": "traffic.timeout of a TracegatePolicy for the Ingress",
  "proxy-connect-timeout": "backend.tcp of a TracegatePolicy for the Service",
  "proxy-next-upstream": "traffic.retry of a TracegatePolicy for the Ingress",
  "proxy-next-upstream-tries": "traffic.retry of a TracegatePolicy for the Ingress",
  "proxy-buffering": "nothing: bodies are streamed; traffic.buffer of a TracegatePolicy for the Ingress buffers them",
  "backend-protocol": "appProtocol of the Service's port, and a BackendTLSPolicy for TLS; GRPCRoutes for gRPC",
  "proxy-ssl-secret": "a BackendTLSPolicy for the Service",
  "proxy-ssl-verify": "a BackendTLSPolicy for the Service",
  "ssl-passthrough": "a TLSRoute of a listener with tls.mode Passthrough",
  affinity: "sessionPersistence of a rule of an HTTPRoute",
  "affinity-mode": "sessionPersistence of a rule of an HTTPRoute",
  "session-cookie-name": "sessionPersistence.sessionName of a rule of an HTTPRoute",
  "upstream-hash-by": "backend.sessionAffinity of a TracegatePolicy for the Service",
  "load-balance": "backend.sessionAffinity of a TracegatePolicy for the Service",
  "upstream-vhost": "an HTTPRoute with the filter URLRewrite (hostname)",
  "custom-headers": "an HTTPRoute with the filter ResponseHeaderModifier",
  "custom-http-errors": "traffic.errorPages of a TracegatePolicy for the Ingress",
  "default-backend": "spec.defaultBackend of the Ingress",
  "mirror-target": "an HTTPRoute with the filter RequestMirror",
  "configuration-snippet": "filters of an HTTPRoute, or a TracegatePolicy for the Ingress",
  "server-snippet": "filters of an HTTPRoute, or a TracegatePolicy for the Ingress",
};

/** Whether an annotation configures another controller. */
export function isForeign(name: string): boolean {
  return FOREIGN.test(name);
}

/** What to use instead of an annotation, whose name is given without its prefix. */
export function insteadOf(short: string): string {
  const instead = Object.hasOwn(INSTEAD, short) ? INSTEAD[short] : undefined;
  return `use ${instead ?? "an HTTPRoute or a TracegatePolicy, if it is needed"}`;
}

/** The annotations that are refused, each with what to use instead. */
export function refusedAnnotations(annotations: Readonly<Record<string, string>> = {}): readonly string[] {
  return Object.keys(annotations)
    .filter(isForeign)
    .sort()
    .map(
      (name) => `annotation ${name} is not supported; ${insteadOf(name.slice(name.indexOf("/") + 1))}, and remove it`,
    );
}
