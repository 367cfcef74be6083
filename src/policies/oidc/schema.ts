import { z } from "zod";
import { checking } from "../schema/checks.ts";
import { textSource } from "../schema/source.ts";

const endpoint = z.url({
  protocol: /^https?$/,
  error: ({ input }) =>
    typeof input === "string" ? "not an absolute URL; write it with https:// or http:// in front" : undefined,
});
const FRAGMENT = "a redirect URI has no fragment (RFC 6749 3.1.2)";

export const schema = z
  .strictObject({
    issuer: endpoint.describe("The provider, as in `iss` of its tokens."),
    discovery: textSource("the provider's discovery document")
      .optional()
      .describe(
        "Discovery document of the provider. Default, unless the endpoints are configured: the issuer with `/.well-known/openid-configuration`.",
      ),
    authorizationEndpoint: endpoint
      .optional()
      .describe("Where browsers log in; together with tokenEndpoint and jwks it replaces discovery."),
    tokenEndpoint: endpoint.optional().describe("Where the gateway exchanges codes for tokens."),
    jwks: textSource("the provider's key set").optional().describe("Keys that verify id tokens."),
    tokenEndpointAuth: z
      .enum(["clientSecretBasic", "clientSecretPost"])
      .optional()
      .describe("How the gateway authenticates to the token endpoint. Default: as discovered, else basic."),
    clientId: z.string().min(1).describe("Client id of this gateway at the provider."),
    clientSecret: z.string().min(1).describe("The client's secret. Never shown in dumps and traces."),
    redirectURI: endpoint
      .regex(/^[^#]*$/, { error: FRAGMENT })
      .describe(
        "URL of this gateway that the provider redirects browsers to; its host and path must be subject to this policy.",
      ),
    scopes: z
      .array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, { error: "a scope has no spaces; list them" }))
      .default([])
      .describe("Scopes to request besides `openid`."),
  })
  .check(
    checking((value) => {
      const names = ["authorizationEndpoint", "tokenEndpoint", "jwks"] as const;
      const missing = names.filter((name) => value[name] === undefined);
      if (missing.length === names.length) return undefined;
      if (missing.length > 0)
        return `${names.join(", ")} must be set together; add ${missing.join(" and ")}, or remove them all for discovery`;
      if (value.discovery === undefined) return undefined;
      return { path: ["discovery"], message: `is set beside ${names.join(", ")}; keep one of the two` };
    }),
  )
  .describe(
    "Requires a login with an OpenID Connect provider; browsers without a session are redirected to it. Expressions read the claims of the id token as `jwt`. Requests that cannot show a login page get 401; OPTIONS passes only as a CORS preflight for `cors`. A callback with an invalid code gets 400; if the provider fails, the response is 502, and if it cannot be reached, 503. The environment variable OIDC_COOKIE_SECRET holds the key that seals cookies: 64 hexadecimal digits. A session lasts one hour, or until the id token expires if that is earlier, and cannot be revoked before; a login must be finished within 5 minutes.",
  );

/** The policy as configurations have it. */
export type OidcInput = z.output<typeof schema>;

/** What runs: with what the provider's discovery document says. */
export interface Oidc extends Pick<OidcInput, "issuer" | "clientId" | "clientSecret" | "redirectURI"> {
  readonly authorizationEndpoint: string;
  readonly tokenEndpoint: string;
  readonly tokenEndpointAuth: NonNullable<OidcInput["tokenEndpointAuth"]>;
  /** The provider announces that callbacks have `iss` (RFC 9207 3). */
  readonly callbackNamesIssuer: boolean;
  /** The provider's key set (RFC 7517), as JSON text. */
  readonly jwks: string;
  /** The URL of the key set; absent if the configuration contains the set. */
  readonly jwksUrl?: string | undefined;
  /** A document of the provider has not been fetched yet, so all logins fail. */
  readonly incomplete?: boolean | undefined;
  readonly scopes: readonly string[];
}
