import { z } from "zod";
import type { ConfigOf } from "../resolve.ts";
import { basicFields, oneWay } from "./basic-schema.ts";
import { crossAppAccess, oauthTokenExchange } from "./token-endpoint-schema.ts";

export const schema = z
  .strictObject({
    passthrough: basicFields.passthrough,
    key: basicFields.key,
    jwtSign: basicFields.jwtSign,
    oauthTokenExchange: oauthTokenExchange
      .optional()
      .describe(
        "A token that an authorization server gives in exchange for the client's. A request without a token, or with one that the server refuses, is 400.",
      ),
    crossAppAccess: crossAppAccess
      .optional()
      .describe(
        "The same in two steps: the client's identity provider gives an assertion, and the resource's authorization server an access token for that.",
      ),
    credentials: basicFields.credentials,
  })
  .check(oneWay(["passthrough", "key", "jwtSign", "oauthTokenExchange", "crossAppAccess"]))
  .describe("Adds the credentials that the backend asks for. Failures are 500.");

export type BackendAuth = ConfigOf<typeof schema>;
