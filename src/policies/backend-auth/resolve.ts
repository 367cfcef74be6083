import type { z } from "zod";
import { defined, type Resolver } from "../contract/resolver.ts";
import type { BackendAuth, schema } from "../schema/backend-auth.ts";
import type { ClientAuth, CrossAppAccess, TokenEndpointInput } from "../schema/token-endpoint.ts";

type Written = z.output<typeof schema>;

/** Reads keys and secrets from their files, and finds the targets of token endpoints. */
export function resolve({ oauthTokenExchange, crossAppAccess, ...written }: Written, resolver: Resolver): BackendAuth {
  const { key, jwtSign, credentials } = written;
  return defined({
    ...written,
    key: key && defined({ ...key, value: resolver.text(["key", "value"], key.value) }),
    jwtSign:
      jwtSign && defined({ ...jwtSign, signingKey: resolver.text(["jwtSign", "signingKey"], jwtSign.signingKey) }),
    credentials: credentials.map((each, i) =>
      defined({ ...each, key: resolver.text(["credentials", i, "key"], each.key) }),
    ),
    oauthTokenExchange: oauthTokenExchange && endpoint(oauthTokenExchange, resolver.within("oauthTokenExchange")),
    crossAppAccess: crossAppAccess && access(crossAppAccess, resolver.within("crossAppAccess")),
  });
}

function access(written: NonNullable<Written["crossAppAccess"]>, resolver: Resolver): CrossAppAccess {
  return {
    ...written,
    identityProvider: endpoint(written.identityProvider, resolver.within("identityProvider")),
    resourceAuthorizationServer: endpoint(
      written.resourceAuthorizationServer,
      resolver.within("resourceAuthorizationServer"),
    ),
  };
}

function endpoint<Endpoint extends TokenEndpointInput>(written: Endpoint, resolver: Resolver) {
  const { host, service, backend, policies, ...others } = written;
  const { clientAuth } = written;
  return defined({
    ...resolver.tokenEndpoint(written),
    ...others,
    clientAuth: clientAuth && client(clientAuth, resolver.within("clientAuth")),
  });
}

function client(written: NonNullable<TokenEndpointInput["clientAuth"]>, resolver: Resolver): ClientAuth {
  if (written.method !== "privateKeyJwt") {
    const { clientSecret, ...others } = written;
    return defined({
      ...others,
      clientSecret: clientSecret === undefined ? undefined : resolver.text(["clientSecret"], clientSecret),
    });
  }
  const { signingKey, certificate, ...others } = written;
  return defined({
    ...others,
    signingKey: resolver.text(["signingKey"], signingKey),
    certificate: certificate === undefined ? undefined : resolver.text(["certificate"], certificate),
  });
}
