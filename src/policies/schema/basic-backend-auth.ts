import { z } from "zod";
import { checking, noneOf, setOf, tooMany } from "./checks.ts";
import { duration } from "./fields.ts";
import { targetLocation } from "./location.ts";
import type { ConfigOf } from "./resolved.ts";
import { asText, inFile, localSource } from "./source.ts";

/** `Authorization: Bearer …` as a location. */
export const BEARER = { header: { name: "authorization", prefix: "Bearer " } };

/** Where the gateway puts a credential. */
export const putLocation = targetLocation
  .prefault(BEARER)
  .describe("Where the request to the backend carries it. Default: `Authorization: Bearer …`.");

/** A secret in the configuration or in a file. */
export const secret = (what: string) =>
  localSource(what).describe("Prefer an environment variable, `${NAME}`, or a file.");
export const text = z.string().min(1);

/** A fixed credential and its place. */
export const key = z.union([
  text.transform((value) => ({ value: asText(value), location: BEARER })),
  z
    .strictObject({ file: text.describe("File with the credential, reloaded when it changes.") })
    .transform(({ file }) => ({ value: inFile(file), location: BEARER })),
  z.strictObject({ value: secret("the credential"), location: putLocation }),
]);

/** The private key of signatures, with the algorithm and the name of its public half. */
export const signing = {
  signingKey: localSource("the private key in PEM").describe("RSA or EC key in PEM, without a passphrase."),
  alg: z
    .enum(["RS256", "RS384", "RS512", "PS256", "ES256", "ES384"])
    .default("RS256")
    .describe("Signature algorithm; must fit the key. Default: RS256."),
  kid: text.optional().describe("`kid` in the header of the token, which identifies the public key."),
};

/** Claims that the gateway sets itself. */
const OWN_CLAIMS = ["iat", "exp"];

const claims = z
  .record(z.string(), z.unknown())
  .refine((claims) => !OWN_CLAIMS.some((name) => Object.hasOwn(claims, name)), {
    message: "iat and exp are set by the gateway; remove them, and set ttl",
  });

/** Tokens that the gateway signs itself (RFC 7519). Times in tokens are whole seconds. */
const jwtSign = z.strictObject({
  ...signing,
  claims: claims
    .optional()
    .describe("Claims of every token, such as `iss`, `sub` and `aud`. The gateway adds `iat` and `exp`."),
  ttl: duration
    .prefault("5m")
    .refine((milliseconds) => milliseconds >= 1000, { message: "tokens live in whole seconds; write at least 1s" })
    .describe("Lifetime of a token. It is replaced after half of its lifetime. Default: 5m."),
  location: putLocation,
});

/** Credentials that need no call to another service. */
export const basicFields = {
  passthrough: z
    .strictObject({ location: putLocation })
    .optional()
    .describe("Forwards the client's own token, which `jwtAuth` has verified and removed from the request."),
  key: key.optional().describe("A fixed credential. A string or `{file}` alone is sent as `Authorization: Bearer …`."),
  jwtSign: jwtSign.optional().describe("A token that the gateway signs."),
  credentials: z
    .array(z.strictObject({ location: targetLocation, key: secret("the credential") }))
    .default([])
    .describe("Further fixed credentials, each with its location."),
};

/** Checks that exactly one of `ways` is set, or `credentials` alone. */
export function oneWay(ways: readonly string[]) {
  return checking((value: { readonly credentials: readonly unknown[] }) => {
    const isSet = value.credentials.length > 0 || setOf(value, ways).length > 0;
    return isSet ? tooMany(value, ways) : noneOf([...ways, "credentials"]);
  });
}

/** `backendAuth` of calls to token endpoints: without token exchange, which would need a token endpoint itself. */
export const basicSchema = z
  .strictObject(basicFields)
  .check(oneWay(["passthrough", "key", "jwtSign"]))
  .describe("Adds credentials for the token endpoint's host, besides `clientAuth`.");

/** Credentials that need no exchange: those that calls to token endpoints may have. */
export type BasicBackendAuth = ConfigOf<typeof basicSchema>;
export type JwtSigning = ConfigOf<typeof jwtSign>;
/** A private key and how it signs. */
export type Signing = Pick<JwtSigning, "signingKey" | "alg" | "kid">;
