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
  "GatewayHTTPSListenerDetectMisdirectedRequests",
  "GatewayInfrastructurePropagation",
  "GatewayPort8080",
  "GatewayStaticAddresses",
  "HTTPRoute",
  "HTTPRoute303RedirectStatusCode",
  "HTTPRoute307RedirectStatusCode",
  "HTTPRoute308RedirectStatusCode",
  "HTTPRouteBackendProtocolH2C",
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

/** GRPCRoutes are translated, but clients cannot speak HTTP/2 to the gateway yet: then ["GRPCRoute", "GRPCRouteNamedRouteRule"]. */
const GRPC_FEATURES: readonly string[] = [];

/** Sorted by name, as the field requires. */
export const SUPPORTED_FEATURES: readonly { readonly name: string }[] = [...FEATURES, ...GRPC_FEATURES]
  .sort()
  .map((name) => ({ name }));
