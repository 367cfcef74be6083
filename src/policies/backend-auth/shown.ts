import type { BackendAuth, ClientAuth, TokenEndpoint } from "../../ir/policies.ts";
import { REDACTED } from "../../trace/redaction.ts";
import { shownCalling } from "../calls/shown.ts";

/** The configuration without secrets; `hidden` are names of headers of calls whose values are not shown. */
export function shown(config: BackendAuth, hidden: ReadonlySet<string>): unknown {
  const { key, jwtSign, oauthTokenExchange, crossAppAccess, credentials } = config;
  return {
    ...config,
    ...(key !== undefined && { key: { ...key, value: REDACTED } }),
    ...(jwtSign !== undefined && { jwtSign: { ...jwtSign, signingKey: REDACTED } }),
    ...(oauthTokenExchange !== undefined && { oauthTokenExchange: shownEndpoint(oauthTokenExchange, hidden) }),
    ...(crossAppAccess !== undefined && {
      crossAppAccess: {
        ...crossAppAccess,
        identityProvider: shownEndpoint(crossAppAccess.identityProvider, hidden),
        resourceAuthorizationServer: shownEndpoint(crossAppAccess.resourceAuthorizationServer, hidden),
      },
    }),
    credentials: credentials.map(({ location }) => ({ location, key: REDACTED })),
  };
}

function shownEndpoint<Endpoint extends TokenEndpoint>(endpoint: Endpoint, hidden: ReadonlySet<string>): Endpoint {
  const { clientAuth } = endpoint;
  return {
    ...shownCalling(endpoint, hidden),
    ...(clientAuth !== undefined && { clientAuth: shownClient(clientAuth) }),
  };
}

function shownClient(client: ClientAuth): ClientAuth {
  return client.method === "privateKeyJwt"
    ? { ...client, signingKey: REDACTED }
    : { ...client, ...(client.clientSecret !== undefined && { clientSecret: REDACTED }) };
}
