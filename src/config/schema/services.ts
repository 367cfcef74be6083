import { z } from "zod";
import { ipAddress } from "./scalars.ts";

const port = z.int().min(1).max(65535);

/** Port numbers are keys, so they are strings. */
const portKey = z.string().refine((text) => /^\d{1,5}$/.test(text) && port.safeParse(Number(text)).success, {
  message: "a port is a number from 1 to 65535",
});
const shown = z.string().optional().describe("Shown in dumps, not used.");
const portMap = z.record(portKey, port);

export const service = z
  .strictObject({
    name: z.string().min(1).describe("Name of the service."),
    namespace: z.string().min(1).describe("Namespace of the service."),
    hostname: z.string().min(1).describe("Host name; `namespace/hostname` is what backends and workloads refer to."),
    vips: z.array(z.string()).default([]).describe("Virtual addresses; shown, not used."),
    ports: portMap.describe("Service port → port of the workloads."),
    loadBalancer: z
      .strictObject({
        routingPreferences: z
          .array(z.enum(["region", "zone", "subzone", "node", "cluster", "network"]))
          .default([])
          .describe("In what a workload should agree with this gateway, the most important first."),
        mode: z
          .enum(["Standard", "Strict", "Failover", "Passthrough"])
          .default("Standard")
          .describe(
            "`Failover`: the workloads that agree most, others when those are evicted. `Strict`: only those that agree in all. `Standard` and `Passthrough`: all alike.",
          ),
        healthPolicy: z
          .enum(["OnlyHealthy", "AllowAll"])
          .default("OnlyHealthy")
          .describe("`AllowAll`: also workloads with the status unhealthy get requests."),
        algorithm: z
          .enum(["PowerOfTwoChoices", "LeastRequests", "RoundRobin"])
          .optional()
          .describe(
            "How one of the preferred workloads is chosen, weighted by `capacity`. `PowerOfTwoChoices` (default): of two random ones the one with the better health, latency and number of requests in flight. `LeastRequests`: of two random ones the one with fewer requests in flight. `RoundRobin`: in turn, in each worker thread by itself. `sessionAffinity` of a backend goes before all of them.",
          ),
      })
      .optional()
      .describe(
        "Which workload gets a request; prefers those that are near. Where this gateway runs is told by the variables `LOCALITY` (`region/zone/subzone`), `NODE_NAME`, `CLUSTER_ID` and `NETWORK`, the last two also by `config.clusterId` and `config.network`; what is not set agrees with nothing.",
      ),
    appProtocols: z
      .record(portKey, z.string())
      .optional()
      .describe(
        "Service port → protocol: `http2`, `grpc` or `kubernetes.io/h2c` for HTTP/2, `http1` for HTTP/1.1; others mean nothing.",
      ),
  })
  .meta({ id: "Service", description: "A service that `service` backends name as `namespace/hostname`." });

export const workload = z
  .strictObject({
    uid: z.string().min(1).describe("Unique among workloads."),
    name: z.string().min(1).describe("Name of the workload."),
    namespace: z.string().min(1).describe("Namespace of the workload."),
    workloadIps: z.array(ipAddress).default([]).describe("Addresses; several count as one endpoint each."),
    hostname: z.string().optional().describe("Host name to look up where there are no addresses."),
    clusterId: z
      .string()
      .optional()
      .describe(
        "Cluster that the workload is in; for `routingPreferences`. Default: what stands before `//` in `uid`.",
      ),
    network: z.string().optional().describe("Network that the workload is in; for `routingPreferences`."),
    node: z.string().optional().describe("Machine that the workload runs on; for `routingPreferences`."),
    status: z
      .enum(["healthy", "unhealthy"])
      .default("healthy")
      .describe("Unhealthy workloads get no requests, unless the service allows all."),
    capacity: z.int().min(0).default(1).describe("Share of the service's requests."),
    locality: z
      .strictObject({
        region: z.string().optional().describe("Such as `eu-north`."),
        zone: z.string().optional().describe("Part of a region."),
        subzone: z.string().optional().describe("Part of a zone."),
      })
      .optional()
      .describe("Where the workload runs; for `routingPreferences`."),
    services: z.record(z.string(), portMap).default({}).describe("`namespace/hostname` → service port → own port."),
    serviceAccount: shown,
    trustDomain: shown,
    workloadName: shown,
    workloadType: shown,
    canonicalName: shown,
    canonicalRevision: shown,
  })
  .meta({ id: "Workload", description: "An endpoint of services." });
