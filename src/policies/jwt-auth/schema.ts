import { z } from "zod";
import { defined, type Resolver } from "../contract/resolver.ts";
import { checking } from "../schema/checks.ts";
import { location } from "../schema/location.ts";
import type { ConfigOf } from "../schema/resolved.ts";
import { type TextSource, textSource } from "../schema/source.ts";

const provider = {
  issuer: z.string().min(1).describe("Required value of the token's `iss`."),
  audiences: z
    .array(z.string().min(1))
    .optional()
    .describe("The token's `aud` must contain one of these. Default: all tokens of the issuer are accepted."),
  jwks: textSource("the key set (RFC 7517) that tokens are signed with").describe(
    "Public keys; a token selects one by its `kid`. An unknown `kid` makes the gateway fetch a set behind a URL again, at most every 30 seconds.",
  ),
  jwtValidationOptions: z
    .strictObject({
      requiredClaims: z
        .array(z.enum(["exp", "nbf", "aud", "iss", "sub"]))
        .default(["exp"])
        .describe("Claims that a token must have, besides `iss` and, if audiences are configured, `aud`."),
    })
    .optional()
    .describe("Further conditions on tokens. Default: `exp` is required."),
};

export const schema = z
  .strictObject({
    mode: z
      .enum(["strict", "optional", "permissive"])
      .default("optional")
      .describe(
        "`strict`: a valid token is required; `optional` (default): requests without a token pass, an invalid token gets 401; `permissive`: requests with an invalid one pass too.",
      ),
    location: location
      .prefault({ header: { name: "authorization", prefix: "Bearer " } })
      .describe("Location of the token. Default: `Authorization: Bearer TOKEN`."),
    issuer: provider.issuer.optional(),
    audiences: provider.audiences,
    jwks: provider.jwks.optional(),
    jwtValidationOptions: provider.jwtValidationOptions,
    providers: z
      .array(z.strictObject(provider))
      .min(1)
      .optional()
      .describe("Several issuers, instead of issuer, audiences, jwks and jwtValidationOptions."),
  })
  .check(
    checking(({ providers, ...value }) => {
      const own = (["issuer", "jwks", "audiences", "jwtValidationOptions"] as const).filter(
        (name) => value[name] !== undefined,
      );
      if (providers !== undefined)
        return own.length > 0 ? `beside providers, ${own.join(", ")} must not be set` : undefined;
      const missing = (["issuer", "jwks"] as const).filter((name) => value[name] === undefined);
      return missing.length > 0 ? `${missing.join(" and ")} must be set, or providers` : undefined;
    }),
  )
  .describe(
    'Verifies signed tokens (JWT). Valid tokens are removed from the request; expressions read the claims as `jwt`. A 401 carries a `Bearer` challenge, with `error="invalid_token"` for an invalid token (RFC 6750).',
  );

type Config = ConfigOf<typeof schema>;

/** One issuer with its keys. */
export type JwtProvider = NonNullable<Config["providers"]>[number] & {
  /** The URL of the key set, which is fetched again when a token names an unknown key. */
  readonly jwksUrl?: string | undefined;
};
/** The compiled policy. */
export type JwtAuth = Omit<Config, "providers"> &
  Pick<JwtProvider, "jwksUrl"> & { readonly providers?: readonly JwtProvider[] | undefined };

/** Reads the key sets. A set behind a URL is absent until it has been fetched; until then, tokens of its issuer cannot be verified. */
export function resolve(written: z.output<typeof schema>, resolver: Resolver): JwtAuth {
  const { jwks, providers } = written;
  return defined({
    ...written,
    jwks: jwks === undefined ? undefined : resolver.text(["jwks"], jwks),
    jwksUrl: urlOf(jwks),
    providers: providers?.map((provider, i) =>
      defined({
        ...provider,
        jwks: resolver.text(["providers", i, "jwks"], provider.jwks),
        jwksUrl: urlOf(provider.jwks),
      }),
    ),
  });
}

function urlOf(source: TextSource | undefined): string | undefined {
  return typeof source === "object" && "url" in source ? source.url : undefined;
}
