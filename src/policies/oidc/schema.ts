import { z } from "zod";
import { formatDuration, ms } from "../../base/durations.ts";
import { FRAMING } from "../contract/header-edits.ts";
import { checking } from "../schema/checks.ts";
import { duration } from "../schema/fields.ts";
import type { ConfigOf } from "../schema/resolved.ts";
import { textSource } from "../schema/source.ts";

const endpoint = z.url({
  protocol: /^https?$/,
  error: ({ input }) =>
    typeof input === "string" ? "not an absolute URL; write it with https:// or http:// in front" : undefined,
});
const lifetime = duration.refine((time) => time >= 1000, { message: "must be at least 1s" });
const path = z.string().regex(/^\/[^?#\s]*$/, { error: "not a path; write it with / in front and without a query" });
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
      .describe("Scopes to request besides `openid`; many providers issue refresh tokens only for `offline_access`."),
    session: z
      .strictObject({
        lifetime: lifetime
          .optional()
          .describe(
            "A session ends after this time, even if it is in use. Default: one hour, or with the id token if that expires earlier and there is no refresh token.",
          ),
        idleTimeout: lifetime
          .optional()
          .describe(
            "A session ends after this time without a request, give or take a tenth. Default: no limit but the lifetime.",
          ),
      })
      .check(
        checking(({ lifetime = ms(3_600_000), idleTimeout = ms(0) }) =>
          idleTimeout < lifetime
            ? undefined
            : {
                path: ["idleTimeout"],
                message: `never ends a session, whose lifetime is ${formatDuration(lifetime)}; use a shorter one, or set a longer lifetime`,
              },
        ),
      )
      .optional()
      .describe("How long sessions last."),
    accessTokenHeader: z
      .string()
      .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, { error: "is not a name of a header; use letters, digits and -" })
      .refine((name) => !FRAMING.has(name.toLowerCase()) && name.toLowerCase() !== "cookie", {
        error: "cannot carry a token; choose another header, such as authorization or x-access-token",
      })
      .optional()
      .describe(
        "Header in which backends get the access token; in `authorization` it follows `Bearer `. What clients send in it is removed. Default: backends do not get the token.",
      ),
    endSessionEndpoint: endpoint
      .optional()
      .describe(
        "Where a logout ends the session at the provider. Default: as discovered; without one, a logout ends the session here only.",
      ),
    logout: z
      .strictObject({
        path: path.describe("Path of this gateway that logs users out, by GET or POST."),
        redirectURI: endpoint
          .optional()
          .describe(
            "Where the browser goes after the logout: a page that this policy does not protect, which the provider must know as a post-logout redirect URI. Default: a page of the gateway or the provider that says so.",
          ),
        backChannelPath: path
          .optional()
          .describe(
            "Path to which the provider posts logout tokens (OpenID Connect Back-Channel Logout). Default: none.",
          ),
      })
      .check(
        checking(({ path, backChannelPath }) =>
          path === backChannelPath
            ? { path: ["backChannelPath"], message: "is the path of the logout too; use another one" }
            : undefined,
        ),
      )
      .optional()
      .describe(
        "Logout by the user or the provider. Paths are on the host of `redirectURI`, and must be subject to this policy. Default: sessions end by time only.",
      ),
  })
  .check(
    checking(({ redirectURI, logout }) => {
      const taken = URL.canParse(redirectURI) ? new URL(redirectURI).pathname : undefined;
      for (const name of ["path", "backChannelPath"] as const)
        if (logout?.[name] !== undefined && logout[name] === taken)
          return { path: ["logout", name], message: "is the path of redirectURI too; use another one" };
      return undefined;
    }),
  )
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
    "Requires a login with an OpenID Connect provider; browsers without a session are redirected to it. Expressions read the claims of the id token as `jwt`. Requests that cannot show a login page get 401; OPTIONS passes only as a CORS preflight for `cors`. A callback with an invalid code gets 400; if the provider fails, the response is 502, and if it cannot be reached, 503. The environment variable OIDC_COOKIE_SECRET holds the key that seals cookies: 64 hexadecimal digits. A login must be finished within 5 minutes. A session lasts as long as `session` says; if the provider issues refresh tokens, its tokens are refreshed shortly before they expire, and a refused refresh ends it. `docs/oidc-sessions.md` draws the flow.",
  );

/** The policy as configurations have it. */
export type OidcInput = z.output<typeof schema>;

type Endings = ConfigOf<typeof schema>;

/** What runs: with what the provider's discovery document says. */
export interface Oidc
  extends Pick<OidcInput, "issuer" | "clientId" | "clientSecret" | "redirectURI">,
    Pick<Endings, "session" | "logout" | "accessTokenHeader" | "endSessionEndpoint"> {
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
