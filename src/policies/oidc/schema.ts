import { z } from "zod";
import { textSource } from "../shared/source-schema.ts";

const endpoint = z.url({
  protocol: /^https?$/,
  error: ({ input }) =>
    typeof input === "string" ? "not an absolute URL; write it with https:// or http:// in front" : undefined,
});
const FRAGMENT = "a redirect URI has no fragment (RFC 6749 3.1.2)";

export const schema = z
  .strictObject({
    issuer: endpoint.describe("The provider, as `iss` of its tokens names it."),
    discovery: textSource("the provider's discovery document")
      .optional()
      .describe("Default, unless the endpoints are given: the issuer with `/.well-known/openid-configuration`."),
    authorizationEndpoint: endpoint
      .optional()
      .describe("Where browsers log in. With tokenEndpoint and jwks in place of discovery."),
    tokenEndpoint: endpoint.optional().describe("Where the gateway trades codes for tokens."),
    jwks: textSource("the provider's key set").optional().describe("Keys that id tokens are verified with."),
    tokenEndpointAuth: z
      .enum(["clientSecretBasic", "clientSecretPost"])
      .optional()
      .describe("How the gateway identifies itself to the token endpoint. Default: as discovery says, else basic."),
    clientId: z.string().min(1).describe("This gateway at the provider."),
    clientSecret: z.string().min(1).describe("Its secret. Never shown in dumps and traces."),
    redirectURI: endpoint
      .regex(/^[^#]*$/, { error: FRAGMENT })
      .describe(
        "Where the provider sends browsers back to: a URL of this gateway, of a host and path that this policy applies to.",
      ),
    scopes: z
      .array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, { error: "a scope has no spaces; list them" }))
      .default([])
      .describe("Scopes to ask for besides `openid`."),
  })
  .check(({ value, issues }) => {
    const names = ["authorizationEndpoint", "tokenEndpoint", "jwks"] as const;
    const missing = names.filter((name) => value[name] === undefined);
    if (missing.length === names.length) return;
    if (missing.length > 0)
      issues.push({
        code: "custom",
        input: value,
        message: `${names.join(", ")} must be set together; add ${missing.join(" and ")}, or remove them all for discovery`,
      });
    else if (value.discovery !== undefined)
      issues.push({
        code: "custom",
        input: value.discovery,
        path: ["discovery"],
        message: `is set beside ${names.join(", ")}; keep one of the two`,
      });
  })
  .describe(
    "Lets only those pass who have logged in with an OpenID Connect provider, and sends browsers there. Claims of the id token become `jwt`. Requests that cannot show a login page get 401; OPTIONS passes only as a CORS preflight that `cors` answers. A callback with a bad code is 400, a provider that fails 502, one that cannot be reached 503. The environment variable OIDC_COOKIE_SECRET holds the key of its cookies: 64 hexadecimal digits.",
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
  readonly scopes: readonly string[];
}
