import { GatewayError } from "../../base/errors.ts";
import { type CelEnvironment, readsBody } from "../../cel/index.ts";
import type { CredentialPlaces } from "../contract/credential-names.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import { type ConfigPath, PolicyError } from "../contract/policy-error.ts";
import type { OutgoingContext } from "../contract/types.ts";
import type { CrossAppAccess, TokenExchange } from "../schema/token-endpoint.ts";
import { secretDigest } from "../shared/credentials/secret-digest.ts";
import { type ClientToken, clientToken, mayAct, unverifiedClaims } from "./client-tokens.ts";
import { TokenCache } from "./token-cache.ts";
import { ID_JAG, type IssuedToken, prepareEndpoint, type TokenEndpoint } from "./token-endpoint.ts";

const TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";

type Form = readonly (readonly [string, string])[];
type Deps = Pick<PolicyDeps, "callouts">;

/** Obtains a token for the backend in exchange for the client's, and removes the client's from the request. */
export type Exchange = (context: OutgoingContext) => Promise<string>;

/**
 * `oauthTokenExchange`: one exchange, by RFC 8693 or, with `jwtBearer`, by RFC 7523. Adds the locations of tokens to `places`. Throws
 * PolicyError, whose path begins with `path`, or CelError for invalid keys and expressions.
 */
export function tokenExchange(
  config: TokenExchange,
  path: ConfigPath,
  places: CredentialPlaces,
  cel: CelEnvironment,
): (deps: Deps) => Exchange {
  const connect = prepareEndpoint(config, path);
  const subject = clientToken(config.subjectToken.source, [...path, "subjectToken", "source"], places, cel);
  const actor = config.actorToken && actorToken(config.actorToken, path, places, cel);
  const cache = new TokenCache(config.cache);
  const parameters = additional(config.additionalParams, path, cel);
  const { requestedTokenType } = config;
  const fixed: Form = [
    ...config.audiences.map((audience) => ["audience", audience] as const),
    ...scope(config.scopes),
    ...config.resources.map((resource) => ["resource", resource] as const),
  ];
  const grant = (token: string): Form =>
    config.grantType === "jwtBearer"
      ? assertion(token)
      : [
          ["grant_type", TOKEN_EXCHANGE],
          ["subject_token", token],
          ["subject_token_type", config.subjectToken.tokenType],
        ];
  const requested: Form = requestedTokenType === undefined ? [] : [["requested_token_type", requestedTokenType]];
  return ({ callouts }) => {
    const endpoint = connect(callouts);
    return async (context) => {
      const token = required(subject, context, "token to exchange");
      const acting = actor?.find(context, token) ?? [];
      const own = [...acting, ...parameters(context)];
      const key = secretDigest(token, ...own.flat()).toString("latin1");
      const issued = await cache.get(key, expiryOf(token), () =>
        endpoint.request([...grant(token), ...requested, ...fixed, ...own], context, requestedTokenType),
      );
      subject.remove(context);
      actor?.token.remove(context);
      return issued;
    };
  };
}

interface Endpoints {
  readonly provider: TokenEndpoint;
  readonly server: TokenEndpoint;
}

/**
 * `crossAppAccess`: two exchanges. The identity provider issues an assertion for the client's identity token (ID-JAG), and the
 * authorization server of the resource an access token for the assertion. Throws like `tokenExchange`.
 */
export function crossAppAccess(
  config: CrossAppAccess,
  path: ConfigPath,
  places: CredentialPlaces,
  cel: CelEnvironment,
): (deps: Deps) => Exchange {
  const provider = prepareEndpoint(config.identityProvider, [...path, "identityProvider"]);
  const server = prepareEndpoint(config.resourceAuthorizationServer, [...path, "resourceAuthorizationServer"]);
  const subject = clientToken(config.subjectToken.source, [...path, "subjectToken", "source"], places, cel);
  const cache = new TokenCache(config.cache);
  const { scopes, accessTokenScopes = scopes } = config;
  const exchange = async (token: string, context: OutgoingContext, to: Endpoints): Promise<IssuedToken> => {
    const { token: asserted } = await to.provider.request(
      [
        ["grant_type", TOKEN_EXCHANGE],
        ["subject_token", token],
        ["subject_token_type", config.subjectToken.tokenType],
        ["requested_token_type", ID_JAG],
        ["audience", config.audience],
        ...scope(scopes),
        ...config.resources.map((resource) => ["resource", resource] as const),
      ],
      context,
      ID_JAG,
    );
    // Without `resource`: the assertion contains it.
    return to.server.request([...assertion(asserted), ...scope(accessTokenScopes)], context);
  };
  return ({ callouts }) => {
    const to = { provider: provider(callouts), server: server(callouts) };
    return async (context) => {
      const token = required(subject, context, "identity token");
      const key = secretDigest(token).toString("latin1");
      const issued = await cache.get(key, expiryOf(token), () => exchange(token, context, to));
      subject.remove(context);
      return issued;
    };
  };
}

function assertion(token: string): Form {
  return [
    ["grant_type", JWT_BEARER],
    ["assertion", token],
  ];
}

function scope(scopes: readonly string[]): Form {
  return scopes.length === 0 ? [] : [["scope", scopes.join(" ")]];
}

function required(token: ClientToken, context: OutgoingContext, what: string): string {
  const found = token.find(context);
  if (found === undefined) throw new GatewayError("TG_INVALID_REQUEST", `the request has no ${what}`);
  return found;
}

interface ActorToken {
  readonly token: ClientToken;
  /** Its form parameters (RFC 8693, section 2.1). */
  find(context: OutgoingContext, subject: string): Form;
}

function actorToken(
  { source, tokenType, enforceMayAct }: NonNullable<TokenExchange["actorToken"]>,
  path: ConfigPath,
  places: CredentialPlaces,
  cel: CelEnvironment,
): ActorToken {
  const token = clientToken(source, [...path, "actorToken", "source"], places, cel);
  return {
    token,
    find(context, subject) {
      const found = required(token, context, "actor token");
      const { jwt, token: verified } = context.requestMetadata;
      const claims = verified === subject ? { ...(jwt as object) } : unverifiedClaims(subject);
      if (enforceMayAct && !mayAct(claims, unverifiedClaims(found)))
        throw new GatewayError("TG_AUTHORIZATION", "the claim may_act of the token does not name the actor");
      return [
        ["actor_token", found],
        ["actor_token_type", tokenType],
      ];
    },
  };
}

/** Parameters from expressions. If one fails the request is rejected: without the parameter the token might allow too much. */
function additional(
  parameters: TokenExchange["additionalParams"],
  path: ConfigPath,
  cel: CelEnvironment,
): (context: OutgoingContext) => Form {
  const compiled = Object.entries(parameters).map(
    ([name, text]) => [name, cel.compileExpression(text, "request")] as const,
  );
  for (const [name, expression] of compiled)
    if (readsBody(expression, "request"))
      throw PolicyError.at([...path, "additionalParams", name], "bodies cannot be read here");
  return ({ variables }) =>
    compiled.map(([name, expression]) => {
      try {
        const value = expression.evaluate(variables);
        if (typeof value !== "string") throw new Error("it does not return a string");
        return [name, value] as const;
      } catch (error) {
        throw new GatewayError("TG_INVALID_REQUEST", `the parameter ${name} of the token request failed`, error);
      }
    });
}

/** Expiry of the client's token in Unix milliseconds: the new token must not outlive it. */
function expiryOf(token: string): number {
  const { exp } = unverifiedClaims(token);
  return typeof exp === "number" ? exp * 1000 : Number.POSITIVE_INFINITY;
}
