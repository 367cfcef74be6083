import { z } from "zod";
import { locality } from "../../translation/schema/locality.ts";
import { objectName } from "../../translation/schema/scalars.ts";
import { LEVELS } from "../../upstream/discovery/locality.ts";
import { algorithm, slowStart } from "./services.ts";

const endpoint = z
  .strictObject({
    host: z.string().describe("`host:port`, `ip:port`, `srv:_service._proto.domain` or `unix:/path`."),
    weight: z
      .int()
      .min(0)
      .max(1_000_000)
      .default(1)
      .describe("Share of the requests, relative to the other endpoints. 0: none."),
    backup: z
      .boolean()
      .default(false)
      .describe("Gets requests only while all endpoints without `backup` are evicted, unhealthy or full."),
    locality: locality
      .optional()
      .describe(
        "Where the server runs. Endpoints with the locality of this gateway (`config.locality`) get the requests, the others while all of those are evicted, unhealthy or full.",
      ),
  })
  .meta({ id: "PoolEndpoint", description: "One server of a pool." });

/** The servers of a pool, in the configuration or as the whole content of a file of their own. */
export const endpointList = z.array(endpoint).min(1);

/** Servers that are equivalent. */
export const endpoints = z
  .union([
    endpointList,
    z.strictObject({
      file: z
        .string()
        .min(1)
        .describe(
          "File with the list, in YAML or JSON. It is watched; while it has a mistake, the former list stays in effect.",
        ),
    }),
  ])
  .meta({ id: "PoolEndpoints", description: "The servers of a pool, here or in a file." })
  .optional()
  .describe("A pool of equivalent servers; each request goes to a healthy one (docs/load-balancing.md).");

/** How one of the endpoints is chosen. */
export const poolLoadBalancer = z
  .strictObject({
    algorithm,
    slowStart,
    routingPreferences: z
      .array(z.enum(LEVELS))
      .optional()
      .describe(
        "What a preferred endpoint has in common with this gateway, most important first. Default: what any `locality` of the endpoints has, of region, zone and subzone in this order.",
      ),
    mode: z
      .enum(["Standard", "Strict", "Failover"])
      .optional()
      .describe(
        "`Failover`: the endpoints with the most in common; as soon as fewer than 5 of 7 are left, others get the requests that the rest should not take. `Strict`: only endpoints with everything in common. `Standard`: no preference. Default: `Failover` if there are `routingPreferences`, else `Standard`.",
      ),
  })
  .optional()
  .describe("How one of the `endpoints` is chosen.");

/** Of a pool that is written in a route. */
export const poolName = objectName
  .optional()
  .describe(
    "Name of the pool in traces and lists of backends. Only with `endpoints`. Default: the key of the backend.",
  );

export type PoolLoadBalancerInput = z.output<typeof poolLoadBalancer>;
export type PoolEndpointInput = z.output<typeof endpoint>;
export type PoolEndpointsInput = NonNullable<z.output<typeof endpoints>>;
