import { jsonOf } from "../../base/fields.ts";
import type { ConfigPath } from "../contract/policy-error.ts";
import { defined, type Resolver } from "../contract/resolver.ts";
import type { Oidc, OidcInput } from "./schema.ts";

type Found = Pick<
  Oidc,
  | "authorizationEndpoint"
  | "tokenEndpoint"
  | "tokenEndpointAuth"
  | "endSessionEndpoint"
  | "callbackNamesIssuer"
  | "jwks"
  | "jwksUrl"
  | "incomplete"
>;

/** The fields of a discovery document that are used (OpenID Connect Discovery 1.0, section 3). */
interface Discovery {
  readonly issuer?: unknown;
  readonly authorization_endpoint?: unknown;
  readonly token_endpoint?: unknown;
  readonly jwks_uri?: unknown;
  /** OpenID Connect RP-Initiated Logout 1.0, section 2.1. */
  readonly end_session_endpoint?: unknown;
  readonly token_endpoint_auth_methods_supported?: unknown;
  /** RFC 9207 3. */
  readonly authorization_response_iss_parameter_supported?: unknown;
}

/**
 * Endpoints and keys of the provider, from the configuration or from the discovery document. Fails closed: until the documents have
 * been fetched, or if they are invalid, all logins fail.
 */
export function resolve(written: OidcInput, resolver: Resolver): Oidc {
  const { discovery, jwks, authorizationEndpoint, tokenEndpoint, tokenEndpointAuth, ...client } = written;
  const { issuer } = client;
  const keys = jwks === undefined ? undefined : resolver.text(["jwks"], jwks);
  const configured: Found = {
    authorizationEndpoint: authorizationEndpoint ?? issuer,
    tokenEndpoint: tokenEndpoint ?? issuer,
    tokenEndpointAuth: tokenEndpointAuth ?? "clientSecretBasic",
    callbackNamesIssuer: false,
    jwks: keys ?? '{"keys":[]}',
    ...(typeof jwks === "object" && "url" in jwks && { jwksUrl: jwks.url }),
    ...(keys === undefined && { incomplete: true }),
  };
  if (tokenEndpoint !== undefined) resolver.called(["tokenEndpoint"], tokenEndpoint);
  if (authorizationEndpoint !== undefined) return { ...client, ...configured };
  const at = discovery === undefined ? ["issuer"] : ["discovery"];
  const text = discovery === undefined ? resolver.fetched(at, wellKnown(issuer)) : resolver.text(at, discovery);
  const found = text === undefined ? undefined : readDiscovery(text, issuer, at, resolver);
  if (found?.tokenEndpoint !== undefined) resolver.called(at, found.tokenEndpoint);
  // What is written takes precedence over what is discovered.
  const chosen = {
    ...(tokenEndpointAuth !== undefined && { tokenEndpointAuth }),
    ...(written.endSessionEndpoint !== undefined && { endSessionEndpoint: written.endSessionEndpoint }),
  };
  return defined({ ...client, ...configured, ...found, ...chosen });
}

/** OpenID Connect Discovery 1.0, section 4.1. */
function wellKnown(issuer: string): string {
  return `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
}

function readDiscovery(text: string, issuer: string, path: ConfigPath, resolver: Resolver): Partial<Found> | undefined {
  const document = parse(text);
  if (document === undefined) {
    resolver.report(path, { message: "the discovery document is not a JSON object" });
    return undefined;
  }
  // The document of another issuer would make its tokens acceptable (OpenID Connect Discovery 1.0, section 4.3).
  if (document.issuer !== issuer) {
    const written = JSON.stringify(document.issuer) ?? "(none)";
    resolver.report(path, {
      message: `the discovery document belongs to the issuer ${written}; set issuer to exactly that, it is ${issuer}`,
    });
    return undefined;
  }
  const { authorization_endpoint, token_endpoint, jwks_uri, token_endpoint_auth_methods_supported: methods } = document;
  const wrong = Object.entries({ authorization_endpoint, token_endpoint, jwks_uri }).filter(([, url]) => !isUrl(url));
  for (const [name] of wrong) resolver.report(path, { message: `the discovery document has no URL as ${name}` });
  if (wrong.length > 0) return undefined;
  const { end_session_endpoint: endSession } = document;
  const jwks = resolver.fetched(path, String(jwks_uri));
  const postOnly =
    Array.isArray(methods) && methods.includes("client_secret_post") && !methods.includes("client_secret_basic");
  return {
    authorizationEndpoint: String(authorization_endpoint),
    tokenEndpoint: String(token_endpoint),
    tokenEndpointAuth: postOnly ? "clientSecretPost" : "clientSecretBasic",
    ...(isUrl(endSession) && { endSessionEndpoint: String(endSession) }),
    callbackNamesIssuer: document.authorization_response_iss_parameter_supported === true,
    ...(jwks === undefined ? { incomplete: true } : { jwks, incomplete: undefined }),
    jwksUrl: String(jwks_uri),
  };
}

function parse(text: string): Discovery | undefined {
  const value = jsonOf(text);
  return typeof value === "object" && value !== null ? value : undefined;
}

function isUrl(value: unknown): boolean {
  return typeof value === "string" && /^https?:\/\//.test(value) && URL.canParse(value);
}
