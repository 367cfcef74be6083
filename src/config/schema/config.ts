import { z } from "zod";
import { exactlyOne } from "./exactly-one.ts";
import { frontendPolicies } from "./frontend.ts";
import { bind, gateway } from "./listeners.ts";
import { backendPolicies, gatewayPolicies, routePolicies } from "./policies.ts";
import { gatewayRoute, gatewayTcpRoute, namedBackend, routeGroup } from "./routes.ts";
import { listenAddress, objectName } from "./scalars.ts";
import { service, workload } from "./services.ts";
import { settings } from "./settings.ts";

const policyTarget = z
  .strictObject({
    gateway: z
      .strictObject({
        gatewayName: z.string(),
        gatewayNamespace: z.string().default("default"),
        listenerName: z.string().optional(),
      })
      .optional(),
    route: z
      .strictObject({ name: z.string(), namespace: z.string().default("default"), ruleName: z.string().optional() })
      .optional(),
    backend: z
      .strictObject({ backend: z.strictObject({ name: z.string(), namespace: z.string().default("") }) })
      .optional(),
  })
  .check(exactlyOne(["gateway", "route", "backend"]));

export const targetedPolicy = z.strictObject({
  name: z.strictObject({ name: objectName, namespace: z.string().default("default") }),
  target: policyTarget,
  phase: z.enum(["route", "gateway"]).default("route"),
  policy: z.strictObject({ ...routePolicies.shape, ...backendPolicies.shape, ...gatewayPolicies.shape }),
});

/** The whole configuration file (reference 1.2). */
export const configFile = z
  .strictObject({
    config: settings.prefault({}),
    adminAddr: listenAddress.optional().describe("The same as `config.adminAddr`."),
    gateways: z.record(objectName, gateway).default({}).describe("Entry points by name."),
    routes: z.array(gatewayRoute).default([]).describe("HTTP routes of gateways."),
    tcpRoutes: z.array(gatewayTcpRoute).default([]).describe("TCP and TLS routes of gateways."),
    binds: z.array(bind).default([]).describe("Ports with listeners and their routes."),
    backends: z.array(namedBackend).default([]).describe("Backends that routes name as `/name`."),
    policies: z.array(targetedPolicy).default([]).describe("Policies attached to gateways, routes or backends."),
    frontendPolicies: frontendPolicies.prefault({}),
    services: z.array(service).default([]),
    workloads: z.array(workload).default([]),
    routeGroups: z.array(routeGroup).default([]).describe("Routes that others delegate to."),
  })
  .meta({ title: "tracegate configuration" });

export type ConfigFile = z.output<typeof configFile>;
export type TargetedPolicyInput = z.output<typeof targetedPolicy>;
