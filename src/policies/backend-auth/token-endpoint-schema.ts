import { z } from "zod";
import { callPolicySchema } from "../calls/policies-schema.ts";
import type { ConfigOf } from "../resolve.ts";
import { expression } from "../shared/cel-schema.ts";
import { location } from "../shared/credentials/location-schema.ts";
import { duration, service } from "../shared/field-schemas.ts";
import { localSource } from "../shared/source-schema.ts";
import { BEARER, basicSchema, putLocation, secret, signing, text } from "./basic-schema.ts";

const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";
const ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token";
const JWT = "urn:ietf:params:oauth:token-type:jwt";

/** Parameters of the grant itself. */
const OWN_PARAMETERS = [
  ...["grant_type", "subject_token", "subject_token_type", "actor_token", "actor_token_type", "assertion", "audience"],
  ...["resource", "scope", "requested_token_type", "client_id", "client_secret", "client_assertion"],
  "client_assertion_type",
];

const clientId = text.describe("Name of this gateway at the authorization server.");

const secretAuth = z.strictObject({
  clientId,
  method: z
    .literal(["clientSecretBasic", "clientSecretPost"])
    .default("clientSecretBasic")
    .describe("The secret goes into `Authorization: Basic`, or into the form. Default: `clientSecretBasic`."),
  clientSecret: secret("the gateway's secret there")
    .optional()
    .describe("Needed with `clientSecretBasic`; `clientSecretPost` without it sends `client_id` alone."),
});

const keyAuth = z.strictObject({
  clientId,
  method: z.literal("privateKeyJwt").describe("A signed assertion in place of a secret (RFC 7523)."),
  ...signing,
  certificate: localSource("the certificate of the key, PEM").optional().describe("Certificate of the key, PEM."),
  certificateHeader: z
    .enum(["x5c", "x5t#S256"])
    .default("x5t#S256")
    .describe("How the assertion names the certificate: the chain itself, or its thumbprint. Default: `x5t#S256`."),
  assertionAudience: text.describe("`aud` of the assertion: what the authorization server calls itself."),
});

const clientAuth = z
  .union([secretAuth, keyAuth])
  .check(({ value, issues }) => {
    if (value.method === "clientSecretBasic" && value.clientSecret === undefined)
      issues.push({
        code: "custom",
        input: value,
        path: ["clientSecret"],
        message: "is needed with clientSecretBasic",
      });
  })
  .meta({ id: "ClientAuth", description: "How the gateway authenticates itself to a token endpoint." });

const callPolicies = callPolicySchema(basicSchema).meta({
  id: "TokenEndpointPolicies",
  description: "How the token endpoint is called. They win over those of a named backend or of `policies[]`.",
});

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

const tokenType = z.string().refine((type) => URL.canParse(type) && !type.includes("#"), {
  message: "not a token type; write an absolute URI such as urn:ietf:params:oauth:token-type:jwt",
});

const source = location.prefault(BEARER).describe("Where the request carries it. Default: `Authorization: Bearer …`.");
const list = z.array(text).default([]);

const cache = z
  .strictObject({
    maxEntries: z
      .int()
      .min(0)
      .max(1_000_000)
      .default(8192)
      .describe("Tokens cached by each thread; 0 = no cache. Default: 8192."),
    defaultTtl: duration
      .prefault("5m")
      .describe("How long a token serves that comes without `expires_in`. Default: 5m."),
  })
  .prefault({})
  .describe("Keeps tokens, until shortly before they or the client's own token expire.");

export const oauthTokenExchange = z
  .strictObject({
    ...endpointFields,
    grantType: z
      .enum(["tokenExchange", "jwtBearer"])
      .default("tokenExchange")
      .describe("RFC 8693, or RFC 7523 with the token as `assertion`. Default: `tokenExchange`."),
    subjectToken: z
      .strictObject({
        source,
        tokenType: tokenType.default(ACCESS_TOKEN).describe("What it is. Default: an access token."),
      })
      .prefault({})
      .describe("The client's token. Where jwtAuth has verified and taken it out, it is used all the same."),
    actorToken: z
      .strictObject({
        source: location.describe("Where the request carries it."),
        tokenType: tokenType.default(ACCESS_TOKEN).describe("What it is. Default: an access token."),
        enforceMayAct: z
          .boolean()
          .default(false)
          .describe("403 unless the claim `may_act` of the client's token names this actor. Default: false."),
      })
      .refine((actor) => !actor.enforceMayAct || actor.tokenType === JWT, {
        message: `enforceMayAct reads claims; set tokenType to ${JWT}`,
      })
      .optional()
      .describe("Token of the party that acts for the client (RFC 8693 1.1)."),
    audiences: list.describe("Services that the new token is for, by name."),
    scopes: list.describe("What the new token shall allow."),
    resources: list.describe("Services that the new token is for, by URL."),
    requestedTokenType: tokenType.optional().describe("What is asked for. Default: up to the endpoint."),
    clientAuth: clientAuth.optional().describe("How the gateway authenticates itself. Default: not at all."),
    additionalParams: z
      .record(text, expression("request"))
      .default({})
      .describe("Further parameters of the form: name → CEL over the request that gives text."),
    authorizationLocation: putLocation,
    cache,
  })
  .check(({ value, issues }) => {
    const reserved = Object.keys(value.additionalParams).find((name) => OWN_PARAMETERS.includes(name.toLowerCase()));
    if (reserved !== undefined)
      issues.push({
        code: "custom",
        input: value,
        path: ["additionalParams"],
        message: `${reserved} belongs to the grant itself; remove it`,
      });
    if (value.grantType !== "jwtBearer") return;
    for (const name of ["requestedTokenType", "actorToken"] as const)
      if (value[name] !== undefined)
        issues.push({ code: "custom", input: value, path: [name], message: "belongs to the grant tokenExchange" });
  });

const endpoint = z
  .strictObject({ ...endpointFields, clientAuth })
  .meta({ id: "TokenEndpoint", description: "A token endpoint, and how the gateway authenticates itself to it." });

export const crossAppAccess = z.strictObject({
  identityProvider: endpoint.describe("Where the client's identity token is exchanged for an assertion (ID-JAG)."),
  resourceAuthorizationServer: endpoint.describe("Where the assertion is exchanged for an access token."),
  audience: text.describe("What the resource's authorization server calls itself."),
  resources: list.describe("Services that the token is for, by URL."),
  scopes: list.describe("What the assertion shall allow, and the access token when `accessTokenScopes` is not set."),
  accessTokenScopes: z.array(text).optional().describe("What the access token shall allow. Default: `scopes`."),
  subjectToken: z
    .strictObject({ source, tokenType: tokenType.default(ID_TOKEN).describe("What it is. Default: an ID token.") })
    .prefault({})
    .describe("The client's identity token. Where jwtAuth has verified and taken it out, it is used all the same."),
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
