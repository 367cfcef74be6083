import { withDurations } from "../../base/durations.ts";
import { REDACTED } from "../../trace/redaction.ts";
import { redactCallPolicies } from "../calls/redact-policies.ts";
import type { BasicBackendAuth } from "./basic-schema.ts";
import type { BackendAuth } from "./schema.ts";
import type { ClientAuth, TokenEndpoint, TokenExchange } from "./token-endpoint-schema.ts";

/** The configuration without secrets; `hidden` are names of headers of calls whose values are not shown. */
export function redact(config: BackendAuth, hidden: ReadonlySet<string>): unknown {
  const { oauthTokenExchange: exchange, crossAppAccess: access, ...basic } = config;
  return {
    ...shownBasic(basic),
    ...(exchange !== undefined && { oauthTokenExchange: shownExchange(exchange, hidden) }),
    ...(access !== undefined && {
      crossAppAccess: {
        ...access,
        cache: withDurations(access.cache, "defaultTtl"),
        identityProvider: shownEndpoint(access.identityProvider, hidden),
        resourceAuthorizationServer: shownEndpoint(access.resourceAuthorizationServer, hidden),
      },
    }),
  };
}

function shownBasic(config: BasicBackendAuth): object {
  const { key, jwtSign, credentials } = config;
  return {
    ...config,
    ...(key !== undefined && { key: { ...key, value: REDACTED } }),
    ...(jwtSign !== undefined && { jwtSign: { ...withDurations(jwtSign, "ttl"), signingKey: REDACTED } }),
    credentials: credentials.map(({ location }) => ({ location, key: REDACTED })),
  };
}

const redactPolicies = redactCallPolicies(shownBasic);

function shownEndpoint(endpoint: TokenEndpoint, hidden: ReadonlySet<string>): object {
  const { clientAuth, policies } = endpoint;
  return {
    ...withDurations(endpoint, "timeout"),
    ...(policies !== undefined && { policies: redactPolicies(policies, hidden) }),
    ...(clientAuth !== undefined && { clientAuth: shownClient(clientAuth) }),
  };
}

function shownExchange(exchange: TokenExchange, hidden: ReadonlySet<string>): object {
  return { ...shownEndpoint(exchange, hidden), cache: withDurations(exchange.cache, "defaultTtl") };
}

function shownClient(client: ClientAuth): ClientAuth {
  return client.method === "privateKeyJwt"
    ? { ...client, signingKey: REDACTED }
    : { ...client, ...(client.clientSecret !== undefined && { clientSecret: REDACTED }) };
}
