import { z } from "zod";
import { basicFields, oneWay } from "./basic-backend-auth.ts";
import type { ConfigOf } from "./resolved.ts";
import { crossAppAccess, oauthTokenExchange } from "./token-endpoint.ts";

export const schema = z
  .strictObject({
    passthrough: basicFields.passthrough,
    key: basicFields.key,
    jwtSign: basicFields.jwtSign,
    oauthTokenExchange: oauthTokenExchange
      .optional()
      .describe(
        "A token that an authorization server issues in exchange for the client's. A request without a token, or with a token that the server rejects, gets 400.",
      ),
    crossAppAccess: crossAppAccess
      .optional()
      .describe(
        "The same in two steps: the client's identity provider issues an assertion, and the resource's authorization server an access token for it.",
      ),
    credentials: basicFields.credentials,
  })
  .check(oneWay(["passthrough", "key", "jwtSign", "oauthTokenExchange", "crossAppAccess"]))
  .describe("Adds credentials for the backend. If they cannot be obtained, the client gets 500.");

export type BackendAuth = ConfigOf<typeof schema>;
