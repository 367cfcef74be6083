import { z } from "zod";
import { duration } from "../../policies/schema/fields.ts";

/** Milliseconds. */
const LEAST_TTL = 1000;
const MOST_TTL = 60_000;

/** How the names of backends become endpoints, in files and in TracegateBackends. */
export const dns = z
  .strictObject({
    mode: z
      .enum(["all", "first"])
      .optional()
      .describe(
        "`all` (default): each address is an endpoint, with its health and connections, and the name is looked up again as its TTL says. `first`: the name is one endpoint; a connection that fails tries the next address.",
      ),
    family: z
      .enum(["All", "V4Preferred", "V4Only", "V6Only"])
      .optional()
      .describe("Address families to use. Default: `config.dns.lookupFamily`."),
    minTtl: duration
      .refine((time) => time >= LEAST_TTL && time <= MOST_TTL, {
        message: "must be between 1s and 1m",
      })
      .optional()
      .describe("Least time between two lookups of the name, whatever its TTL. Only with `mode: all`. Default: 5s."),
  })
  .refine(({ mode, minTtl }) => mode !== "first" || minTtl === undefined, {
    path: ["minTtl"],
    message: "is for mode: all; a name with mode: first is looked up when a connection is opened",
  })
  .meta({ id: "Dns", description: "How names become endpoints (docs/load-balancing.md#names)." })
  .optional()
  .describe("How the names of hosts become endpoints.");
