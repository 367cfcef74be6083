import { z } from "zod";
import { atMostOne, exactlyOne } from "./exactly-one.ts";
import { frontendPolicies } from "./frontend.ts";
import { bind, gateway } from "./listeners.ts";
import { backendPolicies, gatewayPolicies, routePolicies } from "./policies.ts";
import { gatewayRoute, gatewayTcpRoute, namedBackend, routeGroup } from "./routes.ts";
import { listenAddress, objectName, port } from "./scalars.ts";
import { service, workload } from "./services.ts";
import { settings } from "./settings.ts";

const namespace = (fallback: string) => z.string().default(fallback);

const gatewayTarget = atMostOne(
  z.strictObject({
    gatewayName: z.string().describe("`default`, the gateway of all listeners, or the name of an entry of `gateways`."),
    gatewayNamespace: namespace("default").describe("Namespace of a listener of `binds`."),
    listenerName: z
      .string()
      .optional()
      .describe(
        "Only this listener: its name, for an entry of `gateways` `<gateway>` or `<gateway>/<listener>`, or `<listener>` when `gatewayName` is the entry.",
      ),
    port: port.optional().describe("Only the listeners of this port; not together with `listenerName`."),
  }),
  ["listenerName", "port"],
);

const backendTarget = exactlyOne(
  z.strictObject({
    backend: z
      .strictObject({
        name: z.string().describe("Name of the backend."),
        namespace: namespace("").describe("Named backends have none."),
        section: z
          .string()
          .optional()
          .describe("A section of the backend. Backends here have no sections, so the policy never applies."),
      })
      .optional()
      .describe("An entry of `backends`."),
    service: z
      .strictObject({
        hostname: z.string().describe("Host name of the service."),
        namespace: namespace("default").describe("Namespace of the service."),
        port: port.min(1).optional().describe("Only this port of the service."),
      })
      .optional()
      .describe("An entry of `services`, wherever it is a backend."),
  }),
  ["backend", "service"],
);

const policyTarget = exactlyOne(
  z.strictObject({
    gateway: gatewayTarget.optional().describe("All routes of a gateway, or of one of its listeners or ports."),
    route: z
      .strictObject({
        name: z.string().describe("Name of the route."),
        namespace: namespace("default").describe("Namespace of the route."),
        ruleName: z.string().optional().describe("Only this rule."),
        kind: z
          .enum(["HTTPRoute", "TCPRoute"])
          .optional()
          .describe("Only routes of this kind; default: an HTTP route and a TCP route that share the name."),
      })
      .optional()
      .describe("One route, wherever it is attached."),
    backend: backendTarget.optional().describe("A named backend or a service."),
  }),
  ["gateway", "route", "backend"],
);

export const targetedPolicy = z
  .strictObject({
    name: z
      .strictObject({
        name: objectName.describe("Name of the entry; its own among `policies`."),
        namespace: namespace("default").describe("Namespace of the entry."),
      })
      .describe("What the entry is called in dumps."),
    target: policyTarget.describe("What the policy is attached to."),
    phase: z
      .enum(["route", "gateway"])
      .default("route")
      .describe(
        "Whether it runs after or before the route is chosen. Policies that only backends have, such as `backendTLS`, hold " +
          "for all backends of the gateway's or route's routes; of route groups, those that target the group's routes do.",
      ),
    policy: z
      .strictObject({ ...routePolicies.shape, ...backendPolicies.shape, ...gatewayPolicies.shape })
      .describe("Exactly one policy."),
  })
  .meta({
    id: "TargetedPolicy",
    description:
      "A policy apart from what it applies to. Kind by kind, the narrower target wins, and what stands at the listener, route or " +
      "backend itself wins over all: gateway, port, listener, route, rule; for backends gateway, port, listener, backend or " +
      "service, port of the service, route, rule. Rules of `authorization` add up instead, and of `buffer` the widest wins.",
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
    policies: z
      .array(targetedPolicy)
      .default([])
      .describe("Policies attached to gateways, routes, backends or services."),
    frontendPolicies: frontendPolicies.prefault({}),
    services: z.array(service).default([]).describe("Services that `service` backends refer to."),
    workloads: z.array(workload).default([]).describe("Endpoints of the services."),
    routeGroups: z.array(routeGroup).default([]).describe("Routes that others delegate to."),
  })
  .meta({ title: "tracegate configuration", description: "The whole configuration file of tracegate." });

export type ConfigFile = z.output<typeof configFile>;
export type TargetedPolicyInput = z.output<typeof targetedPolicy>;
