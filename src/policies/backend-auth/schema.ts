import { z } from "zod";
import { targetLocation } from "../shared/credentials/location-schema.ts";
import { duration } from "../shared/duration-schema.ts";
import { localSource } from "../shared/source-schema.ts";

const BEARER = { header: { name: "authorization", prefix: "Bearer " } };
const location = targetLocation.prefault(BEARER).describe("Where it is put. Default: `Authorization: Bearer …`.");
const secret = (what: string) => localSource(what).describe("Better from a variable, `${NAME}`, or a file.");
const text = z.string().min(1);

/** A fixed credential and its place. */
export const key = z.union([
  text.transform((value) => ({ value, location: BEARER })),
  z.strictObject({ value: secret("the credential"), location }),
]);

const jwtSign = z.strictObject({
  key: localSource("the private key, PEM").describe("RSA, EC or Ed25519 key that tokens are signed with, PEM."),
  algorithm: z
    .enum(["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"])
    .optional()
    .describe("Default: RS256, EdDSA, or that of the curve."),
  keyId: text.optional().describe("`kid` of tokens, by which backends find the public key."),
  issuer: text.optional().describe("`iss` of tokens."),
  subject: text.optional().describe("`sub` of tokens."),
  audiences: z.array(text).optional().describe("`aud` of tokens."),
  claims: z.record(z.string(), z.unknown()).optional().describe("Further claims."),
  expiration: duration.prefault("5m").describe("How long a token is valid; it is made anew after half of that."),
  location,
});

const url = z.url({ protocol: /^https?$/, error: "not a URL that begins with https:// or http://" });
const endpoint = url.refine((text) => !/^[^/]*\/\/[^/?#]*@/.test(text), {
  message: "a URL with a user is not called, and would be shown; use clientId and clientSecret",
});

const oauthTokenExchange = z
  .strictObject({
    tokenEndpoint: endpoint.describe("Where tokens are exchanged."),
    clientId: text.optional().describe("This gateway there; together with clientSecret."),
    clientSecret: secret("the gateway's secret there").optional(),
    audience: text.optional().describe("Service that the new token is for, by name."),
    resource: url.optional().describe("The same, by URL."),
    scopes: z.array(text).default([]).describe("What the new token shall allow."),
    subjectTokenType: text
      .default("urn:ietf:params:oauth:token-type:access_token")
      .describe("What the client's token is. Default: an access token."),
    requestedTokenType: text.optional().describe("What is asked for. Default: up to the endpoint."),
    location,
  })
  .check(({ value, issues }) => {
    if ((value.clientId === undefined) !== (value.clientSecret === undefined))
      issues.push({ code: "custom", input: value, message: "clientId and clientSecret must be set together" });
  });

const WAYS = ["passthrough", "key", "jwtSign", "oauthTokenExchange"] as const;

export const schema = z
  .strictObject({
    passthrough: z
      .strictObject({ location })
      .optional()
      .describe("The client's own token, which jwtAuth has verified and taken out of the request."),
    key: key.optional().describe("A fixed credential; a text alone is sent as `Authorization: Bearer …`."),
    jwtSign: jwtSign.optional().describe("A token that the gateway signs itself."),
    oauthTokenExchange: oauthTokenExchange
      .optional()
      .describe("A token that is given in exchange for the client's (RFC 8693); kept until it expires."),
    credentials: z
      .array(z.strictObject({ location: targetLocation, key: secret("the credential") }))
      .default([])
      .describe("Further fixed credentials, each with its place."),
  })
  .check(({ value, issues }) => {
    const set = WAYS.filter((way) => value[way] !== undefined);
    if (set.length > 1)
      issues.push({ code: "custom", input: value, message: `only one of ${set.join(", ")} may be set` });
    if (set.length === 0 && value.credentials.length === 0) {
      const noneOf = [...WAYS, "credentials"];
      const message = `one of ${noneOf.join(", ")} is required`;
      issues.push({ code: "custom", input: value, message, params: { noneOf } });
    }
  })
  .describe("Adds the credentials that the backend asks for. Failures are 500.");
