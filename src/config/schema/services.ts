import { z } from "zod";
import { duration } from "../../policies/schema/fields.ts";
import { locality } from "../../translation/schema/locality.ts";
import { ipAddress } from "../../translation/schema/scalars.ts";

const port = z.int().min(1).max(65535);

/** Port numbers are keys, so they are strings. */
const portKey = z.string().refine((text) => /^\d{1,5}$/.test(text) && port.safeParse(Number(text)).success, {
  message: "a port is a number from 1 to 65535",
});
const shown = z.string().optional().describe("Shown in dumps; not used.");
const portMap = z.record(portKey, port);

/** How one of several endpoints that are equally near is chosen. */
export const algorithm = z
  .enum(["PowerOfTwoChoices", "LeastRequests", "RoundRobin"])
  .optional()
  .describe(
    "How one of the preferred endpoints is chosen, weighted by `weight` or `capacity`. `PowerOfTwoChoices` (default): of two random ones the one with the better health, latency and number of requests in progress. `LeastRequests`: of two random ones the one with fewer requests in progress. `RoundRobin`: in turn, in each worker separately. `sessionAffinity` of a backend takes precedence.",
  );

export const slowStart = duration
  .optional()
  .describe(
    "Time such as `30s` in which the share of an endpoint that is new or has recovered grows from nothing to its full size, so that it can fill its caches. No endpoint is held back while all are new, nor for requests with a value of `sessionAffinity`. Default: the full share at once.",
  );

export const service = z
  .strictObject({
    name: z.string().min(1).describe("Name of the service."),
    namespace: z.string().min(1).describe("Namespace of the service."),
    hostname: z
      .string()
      .min(1)
      .describe("Host name. Backends and workloads refer to the service as `namespace/hostname`."),
    vips: z.array(z.string()).default([]).describe("Virtual addresses. Shown in dumps; not used."),
    ports: portMap.describe("Service port → port of the workloads."),
    loadBalancer: z
      .strictObject({
        routingPreferences: z
          .array(z.enum(["region", "zone", "subzone", "node", "cluster", "network"]))
          .default([])
          .describe("What a preferred workload has in common with this gateway, most important first."),
        mode: z
          .enum(["Standard", "Strict", "Failover", "Passthrough"])
          .default("Standard")
          .describe(
            "`Failover`: the workloads with the most in common; as soon as fewer than 5 of 7 are left, others get the requests that the rest should not take. `Strict`: only workloads with everything in common. `Standard` and `Passthrough`: no preference.",
          ),
        healthPolicy: z
          .enum(["OnlyHealthy", "AllowAll"])
          .default("OnlyHealthy")
          .describe("`AllowAll`: workloads with the status `unhealthy` get requests too."),
        algorithm,
        slowStart,
      })
      .optional()
      .describe(
        "How a workload is chosen; nearby ones can be preferred. The locality of this gateway comes from the environment variables `LOCALITY` (`region/zone/subzone`), `NODE_NAME`, `CLUSTER_ID` and `NETWORK`; all but the node can also be set as `config.locality`, `config.clusterId` and `config.network`. Unset values match nothing.",
      ),
    appProtocols: z
      .record(portKey, z.string())
      .optional()
      .describe(
        "Service port → protocol: `http2`, `grpc` or `kubernetes.io/h2c` for HTTP/2, `http1` for HTTP/1.1. Others are ignored.",
      ),
  })
  .meta({ id: "Service", description: "A service that backends refer to as `namespace/hostname`." });

export const workload = z
  .strictObject({
    uid: z.string().min(1).describe("Unique among workloads."),
    name: z.string().min(1).describe("Name of the workload."),
    namespace: z.string().min(1).describe("Namespace of the workload."),
    workloadIps: z.array(ipAddress).default([]).describe("IP addresses; each is an endpoint."),
    hostname: z.string().optional().describe("Host name to look up if there are no addresses."),
    clusterId: z
      .string()
      .optional()
      .describe("Cluster of the workload, for `routingPreferences`. Default: the part of `uid` before `//`."),
    network: z.string().optional().describe("Network of the workload, for `routingPreferences`."),
    node: z.string().optional().describe("Node that the workload runs on, for `routingPreferences`."),
    status: z
      .enum(["healthy", "unhealthy"])
      .default("healthy")
      .describe("Unhealthy workloads get no requests unless `healthPolicy` of the service is `AllowAll`."),
    capacity: z.int().min(0).default(1).describe("Weight of the workload among those of the service."),
    locality: locality.optional().describe("Where the workload runs, for `routingPreferences`."),
    services: z
      .record(z.string(), portMap)
      .default({})
      .describe("Services that the workload belongs to: `namespace/hostname` → service port → port of the workload."),
    serviceAccount: shown,
    trustDomain: shown,
    workloadName: shown,
    workloadType: shown,
    canonicalName: shown,
    canonicalRevision: shown,
  })
  .meta({ id: "Workload", description: "An endpoint of services." });
