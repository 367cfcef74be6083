import { z } from "zod";
import { expression } from "./cel.ts";
import type { ConfigOf } from "./resolved.ts";

const headerName = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, { message: "not a header name" })
  .transform((name) => name.toLowerCase());
const cookieName = z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, { message: "not a cookie name" });

const header = z
  .strictObject({
    header: z.strictObject({
      name: headerName.describe("Name of the header."),
      prefix: z
        .string()
        .optional()
        .describe(
          "Prefix of the credential, such as `Bearer `, compared without case. A header without the prefix carries no credential. Default: none.",
        ),
    }),
  })
  .transform(({ header: { name, prefix } }) => ({ header: { name, prefix: prefix ?? "" } }));
const queryParameter = z.strictObject({
  queryParameter: z.strictObject({ name: z.string().min(1).describe("Name of the parameter.") }),
});
const cookie = z.strictObject({ cookie: z.strictObject({ name: cookieName.describe("Name of the cookie.") }) });

/** Where a request carries a credential; how it becomes a `CredentialLocation` is the same for all policies. */
export const location = z
  .union([
    header,
    queryParameter,
    cookie,
    z.strictObject({
      expression: expression("request").describe("CEL over the request that returns the credential as a string."),
    }),
  ])
  .meta({ id: "CredentialLocation", description: "Where a request carries a credential." });

/** The same for a credential that the gateway itself adds. */
export const targetLocation = z
  .union([header, queryParameter, cookie])
  .meta({ id: "CredentialTarget", description: "Where a request to a backend carries a credential." });

export type CredentialLocation = ConfigOf<typeof location>;
/** The places where the gateway can put a credential. */
export type CredentialTarget = ConfigOf<typeof targetLocation>;
