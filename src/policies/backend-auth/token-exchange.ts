import { GatewayError } from "../../base/errors.ts";

import type { PolicyDeps } from "../deps.ts";
import type { CrossAppAccess, TokenExchange } from "../policy-set.ts";
import { secretDigest } from "../shared/credentials/verified.ts";
import type { OutgoingContext } from "../types.ts";
import { type ClientToken, clientToken, mayAct, unverifiedClaims } from "./client-tokens.ts";
import { TokenCache } from "./token-cache.ts";
import { ID_JAG, type IssuedToken, TokenEndpoint } from "./token-endpoint.ts";

const TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";

type Form = readonly (readonly [string, string])[];
type Deps = Pick<PolicyDeps, "callouts" | "credentials" | "cel">;

/** Gives a token for the backend in exchange for the client's, which it takes out of the request. */
export type Exchange = (context: OutgoingContext) => Promise<string>;

/** `oauthTokenExchange`. Throws an Error that begins with `field` for keys and expressions that cannot be used. */
export function tokenExchange(config: TokenExchange, field: string, deps: Deps): Exchange {
  const endpoint = new TokenEndpoint(config, field, deps.callouts);
  const subject = clientToken(config.subjectToken.source, `${field}.subjectToken.source`, deps);
  const actor = config.actorToken && actorToken(config.actorToken, field, deps);
  const cache = new TokenCache(config.cache);
  const parameters = additional(config.additionalParams, field, deps);
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
}

/** `crossAppAccess`: an assertion of the identity provider, then an access token for that. Throws as `tokenExchange`. */
export function crossAppAccess(config: CrossAppAccess, field: string, deps: Deps): Exchange {
  const provider = new TokenEndpoint(config.identityProvider, `${field}.identityProvider`, deps.callouts);
  const server = new TokenEndpoint(
    config.resourceAuthorizationServer,
    `${field}.resourceAuthorizationServer`,
    deps.callouts,
  );
  const subject = clientToken(config.subjectToken.source, `${field}.subjectToken.source`, deps);
  const cache = new TokenCache(config.cache);
  const { scopes, accessTokenScopes = scopes } = config;
  const exchange = async (token: string, context: OutgoingContext): Promise<IssuedToken> => {
    const { token: asserted } = await provider.request(
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
    // The assertion names the resources itself.
    return server.request([...assertion(asserted), ...scope(accessTokenScopes)], context);
  };
  return async (context) => {
    const token = required(subject, context, "identity token");
    const key = secretDigest(token).toString("latin1");
    const issued = await cache.get(key, expiryOf(token), () => exchange(token, context));
    subject.remove(context);
    return issued;
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
  /** Its parameters of the form. */
  find(context: OutgoingContext, subject: string): Form;
}

function actorToken(
  { source, tokenType, enforceMayAct }: NonNullable<TokenExchange["actorToken"]>,
  field: string,
  deps: Deps,
): ActorToken {
  const token = clientToken(source, `${field}.actorToken.source`, deps);
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

/** Parameters that expressions make. One that fails refuses the request, since the token might allow too much without it. */
function additional(
  parameters: TokenExchange["additionalParams"],
  field: string,
  { cel }: Deps,
): (context: OutgoingContext) => Form {
  const compiled = Object.entries(parameters).map(
    ([name, text]) => [name, cel.compileExpression(text, "request")] as const,
  );
  for (const [name, { reads }] of compiled)
    if (reads.has("request.body") || reads.has("request.bodyPrefix"))
      throw new Error(`${field}.additionalParams.${name}: bodies cannot be read here`);
  return ({ variables }) =>
    compiled.map(([name, expression]) => {
      try {
        const value = expression.evaluate(variables);
        if (typeof value !== "string") throw new Error("it gives no text");
        return [name, value] as const;
      } catch (error) {
        throw new GatewayError("TG_INVALID_REQUEST", `the parameter ${name} of the token request failed`, error);
      }
    });
}

/** Milliseconds since the epoch: what is given for a token must not outlive it. */
function expiryOf(token: string): number {
  const { exp } = unverifiedClaims(token);
  return typeof exp === "number" ? exp * 1000 : Number.POSITIVE_INFINITY;
}
