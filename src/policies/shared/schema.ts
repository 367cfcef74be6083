import { z } from "zod";

/** `authority` of a rewrite or redirect (reference 3.14, 3.15). */
export const authorityChange = z
  .union([
    z.literal(["auto", "none"]).describe("`auto`: the backend's host name; `none`: unchanged."),
    z.strictObject({ full: z.string().min(1).describe("New authority, with port where wanted.") }),
    z.strictObject({ host: z.string().min(1).describe("New host, without port.") }),
    z.strictObject({ port: z.int().min(1).max(65535).describe("New port; the host stays.") }),
  ])
  .meta({ id: "AuthorityChange", description: "Another host, port or both." });

/** `path` of a rewrite or redirect; the query stays. */
export const pathChange = z
  .union([
    z.strictObject({ full: z.string().describe("Replaces the whole path.") }),
    z.strictObject({ prefix: z.string().describe("Replaces the prefix that the route matched.") }),
  ])
  .meta({ id: "PathChange", description: "Another path; the query stays." });

export type AuthorityChange = z.output<typeof authorityChange>;
export type PathChange = z.output<typeof pathChange>;
