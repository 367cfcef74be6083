import { z } from "zod";
import { port } from "./scalars.ts";

/** Port numbers are keys, so they are strings. */
const portMap = z.record(z.string().regex(/^\d+$/, { message: "a port is a number" }), port);

export const service = z
  .strictObject({
    name: z.string().min(1),
    namespace: z.string().min(1),
    hostname: z.string().min(1),
    vips: z.array(z.string()).default([]),
    ports: portMap.describe("Service port → port of the workloads."),
    appProtocols: z.record(z.string(), z.string()).optional(),
  })
  .describe("A service that `service` backends name as `namespace/hostname`.");

export const workload = z
  .strictObject({
    uid: z.string().min(1),
    name: z.string().min(1),
    namespace: z.string().min(1),
    workloadIps: z.array(z.union([z.ipv4(), z.ipv6()])).default([]),
    hostname: z.string().optional(),
    network: z.string().optional(),
    node: z.string().optional(),
    status: z.enum(["healthy", "unhealthy"]).default("healthy"),
    capacity: z.int().min(0).default(1).describe("Share of the service's requests."),
    locality: z
      .strictObject({ region: z.string().optional(), zone: z.string().optional(), subzone: z.string().optional() })
      .optional(),
    services: z.record(z.string(), portMap).default({}).describe("`namespace/hostname` → service port → own port."),
  })
  .describe("An endpoint of services.");
