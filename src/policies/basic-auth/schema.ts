import { z } from "zod";
import { defined, type Resolver } from "../contract/resolver.ts";
import { location } from "../schema/location.ts";
import type { ConfigOf } from "../schema/resolved.ts";
import { localSource } from "../schema/source.ts";

export const schema = z
  .strictObject({
    htpasswd: localSource("the list of users, one `user:hash` per line").describe(
      "Users with their password hashes, as written by `htpasswd -B`: bcrypt, `$apr1$`, `$1$`, `$5$`, `$6$` or `{SHA}`.",
    ),
    realm: z
      .string()
      .regex(/^[\x20-\x7e]*$/, { message: "only printable ASCII can be sent" })
      .default("Restricted")
      .describe("The realm that browsers show when they ask for the password. Default: Restricted."),
    mode: z
      .enum(["strict", "optional"])
      .default("optional")
      .describe(
        "`strict`: valid credentials are required; `optional` (default): requests without credentials pass, invalid ones get 401.",
      ),
    authorizationLocation: location
      .prefault({ header: { name: "authorization", prefix: "Basic " } })
      .describe(
        "Location of the credentials, `user:password` in base64. Default: `Authorization: Basic …`. With `proxy-authorization`, 401 becomes 407.",
      ),
  })
  .describe(
    "Requires a user name and password (RFC 7617). Valid credentials are removed from the request; expressions read `basicAuth.username`. Passwords are verified off the request path, one at a time per worker; when too many wait, the response is 503 with `Retry-After`. Passwords over 512 bytes are rejected.",
  );

export type BasicAuth = ConfigOf<typeof schema>;

/** Reads the list of users. It is absent if its file could not be read; then no password is valid. */
export function resolve({ htpasswd, ...others }: z.output<typeof schema>, resolver: Resolver): BasicAuth {
  return defined({ htpasswd: resolver.text(["htpasswd"], htpasswd), ...others });
}
