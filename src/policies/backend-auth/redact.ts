/** `redact` of `backendAuth`, apart from the module: `calls/` uses it too, and the module uses `calls/`. */
import { withDurations } from "../../base/durations.ts";
import { REDACTED } from "../../base/redaction.ts";
import type { BackendAuth } from "../schema/backend-auth.ts";
import type { BasicBackendAuth } from "../schema/basic-backend-auth.ts";
import type { ClientAuth, TokenEndpoint, TokenExchange } from "../schema/token-endpoint.ts";
import { redactCallPolicies } from "./redact-call-policies.ts";

/** Redacts credentials, keys and client secrets. `hidden`: lower-case names of headers whose values are redacted. */
export function redact(config: BackendAuth, hidden: ReadonlySet<string>): unknown {
  const { oauthTokenExchange: exchange, crossAppAccess: access, ...basic } = config;
  return {
    ...redactBasic(basic),
    ...(exchange !== undefined && { oauthTokenExchange: redactExchange(exchange, hidden) }),
    ...(access !== undefined && {
      crossAppAccess: {
        ...access,
        cache: withDurations(access.cache, "defaultTtl"),
        identityProvider: redactEndpoint(access.identityProvider, hidden),
        resourceAuthorizationServer: redactEndpoint(access.resourceAuthorizationServer, hidden),
      },
    }),
  };
}

function redactBasic(config: BasicBackendAuth): object {
  const { key, jwtSign, credentials } = config;
  return {
    ...config,
    ...(key !== undefined && { key: { ...key, value: REDACTED } }),
    ...(jwtSign !== undefined && { jwtSign: { ...withDurations(jwtSign, "ttl"), signingKey: REDACTED } }),
    credentials: credentials.map(({ location }) => ({ location, key: REDACTED })),
  };
}

const redactPolicies = redactCallPolicies(redactBasic);

function redactEndpoint(endpoint: TokenEndpoint, hidden: ReadonlySet<string>): object {
  const { clientAuth, policies } = endpoint;
  return {
    ...withDurations(endpoint, "timeout"),
    ...(policies !== undefined && { policies: redactPolicies(policies, hidden) }),
    ...(clientAuth !== undefined && { clientAuth: redactClient(clientAuth) }),
  };
}

function redactExchange(exchange: TokenExchange, hidden: ReadonlySet<string>): object {
  return { ...redactEndpoint(exchange, hidden), cache: withDurations(exchange.cache, "defaultTtl") };
}

function redactClient(client: ClientAuth): ClientAuth {
  return client.method === "privateKeyJwt"
    ? { ...client, signingKey: REDACTED }
    : { ...client, ...(client.clientSecret !== undefined && { clientSecret: REDACTED }) };
}
