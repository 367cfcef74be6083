import { z } from "zod";
import { defined, type Resolver } from "../contract/resolver.ts";
import { checking, noneOf, setOf } from "../schema/checks.ts";
import type { ConfigOf } from "../schema/resolved.ts";
import { localSource } from "../schema/source.ts";

const SIDES = ["allow", "deny"] as const;

const list = z.array(localSource("addresses or networks, one on a line; `#` begins a comment"));

export const schema = z
  .strictObject({
    allow: list
      .min(1)
      .optional()
      .describe(
        "The only clients that may pass: addresses, networks such as `10.0.0.0/8`, or files of them. Default: all.",
      ),
    deny: list.min(1).optional().describe("Clients that may not pass, also if `allow` has them."),
  })
  .check(checking((value) => (setOf(value, SIDES).length === 0 ? noneOf(SIDES) : undefined)))
  .describe(
    "Allows or denies requests by the address of the client; denied requests get 403. The client is the peer of the connection or the address of its PROXY header; behind `trustedProxies` of `frontendPolicies.http.forwarded`, it is the last address in `x-forwarded-for` that is not one of them. `deny` beats `allow`. Of several levels that run in one phase, all `deny` lists apply, and the innermost `allow`. A list may have thousands of networks; files are watched, and while one has a mistake, the former lists stay in effect. At a listener of TCP, TLS or UDP, it decides about connections instead: by the peer or the address of its PROXY header, before a TLS handshake; denied ones are closed. `frontendPolicies.ipAccess` does so for all ports and protocols. For conditions on more than the address there is `authorization`, for connections `frontendPolicies.networkAuthorization`.",
  );

/** Each text has one network or several, on a line each. */
export type IpAccess = ConfigOf<typeof schema>;

/** Reads the files. A file that cannot be read is reported, and counts as empty. */
export function resolve({ allow, deny }: z.output<typeof schema>, resolver: Resolver): IpAccess {
  const read = (side: (typeof SIDES)[number], sources: typeof allow): readonly string[] | undefined =>
    sources?.map((source, i) => resolver.text([side, i], source) ?? "");
  return defined({ allow: read("allow", allow), deny: read("deny", deny) });
}
