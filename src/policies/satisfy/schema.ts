import { z } from "zod";
import { type ApiKeyAuth, schema as apiKey } from "../api-key/schema.ts";
import { type BasicAuth, schema as basicAuth, resolve as resolveBasicAuth } from "../basic-auth/schema.ts";
import { defined, type Resolver } from "../contract/resolver.ts";
import { type IpAccess, schema as ipAccess, resolve as resolveIpAccess } from "../ip-access/schema.ts";
import { type JwtAuth, schema as jwtAuth, resolve as resolveJwtAuth } from "../jwt-auth/schema.ts";
import { resolve as resolveOidc } from "../oidc/resolve.ts";
import { type Oidc, schema as oidc } from "../oidc/schema.ts";
import { checking, exactlyOne } from "../schema/checks.ts";

/** An alternative is satisfied by a valid credential only, so the other modes make no sense. */
const mode = z
  .literal("strict")
  .default("strict")
  .describe("Always `strict`: an alternative is satisfied by a valid credential only.");

const alternatives = z.strictObject({
  apiKey: apiKey.safeExtend({ mode }).optional().describe("A valid API key."),
  basicAuth: basicAuth.safeExtend({ mode }).optional().describe("A valid user name and password."),
  ipAccess: ipAccess
    .check(
      checking(({ allow }) =>
        allow === undefined
          ? "without allow, every client that deny does not name would pass without a credential; list those that may, or write ipAccess beside satisfy"
          : undefined,
      ),
    )
    .optional()
    .describe("A client at one of the addresses of `allow`, which needs no credential."),
  jwtAuth: jwtAuth.safeExtend({ mode }).optional().describe("A valid token."),
  oidc: oidc.optional().describe("A session of a browser."),
});

/** The kinds that an alternative can be. */
export const ALTERNATIVES = Object.keys(alternatives.shape) as readonly (keyof typeof alternatives.shape)[];

const alternative = exactlyOne(alternatives, ALTERNATIVES).meta({
  id: "SatisfyAlternative",
  description: "One way to satisfy the policy: exactly one of these policies.",
});

export const schema = z
  .strictObject({
    any: z
      .array(alternative)
      .min(1)
      .describe(
        "The alternatives, tried in this order; the first that is satisfied says who the client is. Put the cheapest first.",
      ),
  })
  .check(
    checking((value) =>
      "shadow" in value && value.shadow === true && value.any.some(({ oidc: login }) => login !== undefined)
        ? "oidc cannot be tried in shadow, because its logins happen at the provider and in the browser; leave it out while shadow is true"
        : undefined,
    ),
  )
  .describe(
    "Requires one of several credentials: an API key, a token, a password, a session of `oidc`, or an address. The first alternative that is satisfied sets its variable (`apiKey`, `jwt` or `basicAuth`), and later ones are not tried. Credentials of all alternatives are removed from the request, whether they are valid or not. If none is satisfied, a browser that opens a page is sent to the login of `oidc`, unless it has sent a wrong credential; other requests get 401 with the challenges of all alternatives, or 403 if all are addresses. If a credential could not be checked, the response is 503. In the gateway phase, a CORS preflight is left to `cors` of the route. With `shadow: true` it cannot have `oidc` among its alternatives. Other policies apply as well: `satisfy` of a gateway, listener and route must all be satisfied, and so must `jwtAuth` beside it.",
  );

type Written = z.output<typeof schema>;

/** One policy, which has to let the request pass. */
export interface Alternative {
  readonly apiKey?: ApiKeyAuth | undefined;
  readonly basicAuth?: BasicAuth | undefined;
  readonly ipAccess?: IpAccess | undefined;
  readonly jwtAuth?: JwtAuth | undefined;
  readonly oidc?: Oidc | undefined;
}

/** The alternatives of each level, of which every level has to be satisfied. */
export type Satisfy = readonly { readonly any: readonly Alternative[] }[];

/** Reads the files and documents of the alternatives. */
export function resolve(written: Written, resolver: Resolver): Satisfy {
  const resolved = written.any.map((each, i) => resolveAlternative(each, resolver.within("any", i)));
  return [{ any: resolved }];
}

function resolveAlternative(written: Written["any"][number], resolver: Resolver): Alternative {
  const { apiKey, basicAuth, ipAccess, jwtAuth, oidc } = written;
  return defined({
    apiKey,
    basicAuth: basicAuth && resolveBasicAuth(basicAuth, resolver.within("basicAuth")),
    ipAccess: ipAccess && resolveIpAccess(ipAccess, resolver.within("ipAccess")),
    jwtAuth: jwtAuth && resolveJwtAuth(jwtAuth, resolver.within("jwtAuth")),
    oidc: oidc && resolveOidc(oidc, resolver.within("oidc")),
  });
}
