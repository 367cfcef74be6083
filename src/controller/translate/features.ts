/** What the controller claims of the Gateway API, `GatewayClass.status.supportedFeatures` (reference 6.6, and UDPRoute). */

const FEATURES: readonly string[] = [
  "BackendTLSPolicy",
  "BackendTLSPolicySANValidation",
  "Gateway",
  "GatewayAddressEmpty",
  "GatewayBackendClientCertificate",
  "GatewayFrontendClientCertificateValidation",
  "GatewayFrontendClientCertificateValidationInsecureFallback",
  "GatewayHTTPListenerIsolation",
  "GatewayInfrastructurePropagation",
  "GatewayPort8080",
  "GatewayStaticAddresses",
  "HTTPRoute",
  "HTTPRoute303RedirectStatusCode",
  "HTTPRoute307RedirectStatusCode",
  "HTTPRoute308RedirectStatusCode",
  "HTTPRouteBackendProtocolWebSocket",
  "HTTPRouteBackendRequestHeaderModification",
  "HTTPRouteBackendTimeout",
  "HTTPRouteCORS",
  "HTTPRouteDestinationPortMatching",
  "HTTPRouteHostRewrite",
  "HTTPRouteMethodMatching",
  "HTTPRouteNamedRouteRule",
  "HTTPRouteParentRefPort",
  "HTTPRoutePathRedirect",
  "HTTPRoutePathRewrite",
  "HTTPRoutePortRedirect",
  "HTTPRouteQueryParamMatching",
  "HTTPRouteRequestMirror",
  "HTTPRouteRequestMultipleMirrors",
  "HTTPRouteRequestPercentageMirror",
  "HTTPRouteRequestTimeout",
  "HTTPRouteResponseHeaderModification",
  "HTTPRouteRetry",
  "HTTPRouteRetryBackendTimeout",
  "HTTPRouteRetryConnectionError",
  "HTTPRouteSchemeRedirect",
  "ListenerSet",
  "ReferenceGrant",
  "TCPRoute",
  "TLSRoute",
  "TLSRouteModeMixed",
  "TLSRouteModeTerminate",
  "UDPRoute",
];

/**
 * Sorted by name, as the field requires. GatewayHTTPSListenerDetectMisdirectedRequests, HTTPRouteBackendProtocolH2C, GRPCRoute and
 * GRPCRouteNamedRouteRule are translated and work over HTTP/1.1, but their tests are clients that speak HTTP/2, which listeners do
 * not yet.
 */
export const SUPPORTED_FEATURES: readonly { readonly name: string }[] = FEATURES.toSorted().map((name) => ({ name }));
