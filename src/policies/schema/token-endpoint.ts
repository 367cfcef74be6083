import { z } from "zod";
import { BEARER, basicSchema, putLocation, secret, signing, text } from "./basic-backend-auth.ts";
import { callPolicySchema } from "./call-policies.ts";
import { expression } from "./cel.ts";
import { checking } from "./checks.ts";
import { duration, service } from "./fields.ts";
import { location } from "./location.ts";
import type { ConfigOf } from "./resolved.ts";
import { localSource } from "./source.ts";

/** Token types of RFC 8693, section 3. */
const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";
const ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token";
const JWT = "urn:ietf:params:oauth:token-type:jwt";

/** Parameters of the grant: an expression over the request could otherwise choose subject, audience or client. */
const OWN_PARAMETERS = [
  ...["grant_type", "subject_token", "subject_token_type", "actor_token", "actor_token_type", "assertion", "audience"],
  ...["resource", "scope", "requested_token_type", "client_id", "client_secret", "client_assertion"],
  "client_assertion_type",
];

const clientId = text.describe("Client id of this gateway at the authorization server.");

const secretAuth = z.strictObject({
  clientId,
  method: z
    .literal(["clientSecretBasic", "clientSecretPost"])
    .default("clientSecretBasic")
    .describe("Sends the secret as `Authorization: Basic`, or in the form. Default: `clientSecretBasic`."),
  clientSecret: secret("the gateway's secret at the token endpoint")
    .optional()
    .describe("Required for `clientSecretBasic`. Without it, `clientSecretPost` sends `client_id` alone."),
});

const keyAuth = z.strictObject({
  clientId,
  method: z.literal("privateKeyJwt").describe("A signed assertion instead of a secret (RFC 7523)."),
  ...signing,
  certificate: localSource("the certificate of the key in PEM").optional().describe("Certificate of the key, PEM."),
  certificateHeader: z
    .enum(["x5c", "x5t#S256"])
    .default("x5t#S256")
    .describe(
      "How the assertion identifies the certificate: the chain itself, or its thumbprint. Default: `x5t#S256`.",
    ),
  assertionAudience: text.describe("`aud` of the assertion: the identifier of the authorization server."),
});

const clientAuth = z
  .union([secretAuth, keyAuth])
  .refine((auth) => auth.method !== "clientSecretBasic" || auth.clientSecret !== undefined, {
    path: ["clientSecret"],
    message: "is needed with clientSecretBasic",
  })
  .meta({ id: "ClientAuth", description: "How the gateway authenticates to a token endpoint." });

const callPolicies = callPolicySchema(basicSchema).meta({
  id: "TokenEndpointPolicies",
  description:
    "How the token endpoint is called. Takes precedence over the policies of a named backend and of `policies[]`.",
});

/** Fields of every token endpoint. */
const endpointFields = {
  host: service.host,
  service: service.service,
  backend: service.backend,
  policies: callPolicies.optional(),
  path: z
    .string()
    .regex(/^\/[!-"$-~]*$/, { message: "not a path; it begins with / and has no fragment" })
    .default("/")
    .describe("Path of the token endpoint. Default: `/`."),
};

/** Token types are URIs (RFC 8693, section 3). */
const tokenType = z.string().refine((type) => URL.canParse(type) && !type.includes("#"), {
  message: "not a token type; write an absolute URI such as urn:ietf:params:oauth:token-type:jwt",
});

const source = location
  .prefault(BEARER)
  .describe("Where the request carries the token. Default: `Authorization: Bearer …`.");
const list = z.array(text).default([]);

const cache = z
  .strictObject({
    maxEntries: z
      .int()
      .min(0)
      .max(1_000_000)
      .default(8192)
      .describe("Tokens cached by each thread; 0 = no cache. Default: 8192."),
    defaultTtl: duration.prefault("5m").describe("Lifetime of tokens issued without `expires_in`. Default: 5m."),
  })
  .prefault({})
  .describe("Caches tokens until shortly before they or the client's token expire.");

/** Exchanges the client's token for one for the backend (RFC 8693, or RFC 7523 with `jwtBearer`). */
export const oauthTokenExchange = z
  .strictObject({
    ...endpointFields,
    grantType: z
      .enum(["tokenExchange", "jwtBearer"])
      .default("tokenExchange")
      .describe(
        "`tokenExchange`: RFC 8693. `jwtBearer`: RFC 7523, with the token as `assertion`. Default: `tokenExchange`.",
      ),
    subjectToken: z
      .strictObject({
        source,
        tokenType: tokenType.default(ACCESS_TOKEN).describe("Type of the token. Default: access token."),
      })
      .prefault({})
      .describe("The client's token, including one that `jwtAuth` has verified and removed."),
    actorToken: z
      .strictObject({
        source: location.describe("Where the request carries the token."),
        tokenType: tokenType.default(ACCESS_TOKEN).describe("Type of the token. Default: access token."),
        enforceMayAct: z
          .boolean()
          .default(false)
          .describe(
            "Requests get 403 unless the claim `may_act` of the client's token names this actor. Default: false.",
          ),
      })
      .refine((actor) => !actor.enforceMayAct || actor.tokenType === JWT, {
        message: `enforceMayAct reads claims; set tokenType to ${JWT}`,
      })
      .optional()
      .describe("Token of the party that acts on behalf of the client (RFC 8693, section 1.1)."),
    audiences: list.describe("Names of the services that the new token is for."),
    scopes: list.describe("Scopes requested for the new token."),
    resources: list.describe("URLs of the services that the new token is for."),
    requestedTokenType: tokenType
      .optional()
      .describe("Requested type of the new token. Default: chosen by the endpoint."),
    clientAuth: clientAuth.optional().describe("How the gateway authenticates to the endpoint. Default: not at all."),
    additionalParams: z
      .record(text, expression("request"))
      .default({})
      .describe("Further form parameters: name → CEL over the request, which must return a string."),
    authorizationLocation: putLocation,
    cache,
  })
  .check(
    checking(({ additionalParams, grantType, ...others }) => {
      const reserved = Object.keys(additionalParams).filter((name) => OWN_PARAMETERS.includes(name.toLowerCase()));
      const foreign = (["requestedTokenType", "actorToken"] as const).filter(
        (name) => grantType === "jwtBearer" && others[name] !== undefined,
      );
      return [
        ...reserved.map((name) => ({
          path: ["additionalParams"],
          message: `${name} belongs to the grant itself; remove it`,
        })),
        ...foreign.map((name) => ({ path: [name], message: "belongs to the grant tokenExchange" })),
      ];
    }),
  );

const endpoint = z
  .strictObject({ ...endpointFields, clientAuth })
  .meta({ id: "TokenEndpoint", description: "A token endpoint, and how the gateway authenticates to it." });

/** Cross-app access: an identity assertion (ID-JAG) of the identity provider, then an access token for it. */
export const crossAppAccess = z.strictObject({
  identityProvider: endpoint.describe("Where the client's identity token is exchanged for an assertion (ID-JAG)."),
  resourceAuthorizationServer: endpoint.describe("Where the assertion is exchanged for an access token."),
  audience: text.describe("Identifier of the resource's authorization server."),
  resources: list.describe("URLs of the services that the token is for."),
  scopes: list.describe(
    "Scopes requested for the assertion, and for the access token unless `accessTokenScopes` is set.",
  ),
  accessTokenScopes: z.array(text).optional().describe("Scopes requested for the access token. Default: `scopes`."),
  subjectToken: z
    .strictObject({ source, tokenType: tokenType.default(ID_TOKEN).describe("Type of the token. Default: ID token.") })
    .prefault({})
    .describe("The client's identity token, including one that `jwtAuth` has verified and removed."),
  cache,
});

export type ClientAuth = ConfigOf<typeof clientAuth>;
export type TokenEndpointPolicies = ConfigOf<typeof callPolicies>;
/** RFC 8693, or RFC 7523 with `jwtBearer`. */
export type TokenExchange = ConfigOf<typeof oauthTokenExchange>;
/** Two exchanges: an identity assertion of the provider (ID-JAG), and for that an access token of the resource's server. */
export type CrossAppAccess = ConfigOf<typeof crossAppAccess>;
export type TokenEndpoint = Pick<TokenExchange, "target" | "policies" | "path" | "clientAuth" | "timeout">;
export type TokenCache = ConfigOf<typeof cache>;

/** As it is written: what exchanges and endpoints have in common. */
export type TokenEndpointInput = Pick<
  z.output<typeof oauthTokenExchange>,
  "host" | "service" | "backend" | "policies" | "path" | "clientAuth"
>;
