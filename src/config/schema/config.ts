import { z } from "zod";
import { atMostOne, exactlyOne } from "../../policies/schema/checks.ts";
import { frontendPolicies } from "../../translation/schema/frontend.ts";
import { backendPolicies, gatewayPolicies, routePolicies } from "../../translation/schema/policies.ts";
import { listenAddress, objectName, port } from "../../translation/schema/scalars.ts";
import { settings } from "../../translation/schema/settings.ts";
import { bind, gateway } from "./listeners.ts";
import { gatewayRoute, gatewayTcpRoute, namedBackend, routeGroup } from "./routes.ts";
import { service, workload } from "./services.ts";

const namespace = (fallback: string) => z.string().default(fallback);

const gatewayTarget = atMostOne(
  z.strictObject({
    gatewayName: z
      .string()
      .describe("Name of an entry of `gateways`, or `default` for the gateway that all listeners belong to."),
    gatewayNamespace: namespace("default").describe("Namespace of a listener of `binds`."),
    listenerName: z
      .string()
      .optional()
      .describe(
        "Only this listener of `binds`, by its name. A listener of `gateways` is called `<gateway>` or `<gateway>/<listener>`, or just `<listener>` when `gatewayName` names the entry.",
      ),
    port: port.optional().describe("Only the listeners on this port. Cannot be combined with `listenerName`."),
  }),
  ["listenerName", "port"],
);

const backendTarget = exactlyOne(
  z.strictObject({
    backend: z
      .strictObject({
        name: z.string().describe("Name of the backend."),
        namespace: namespace("").describe("Leave it out: named backends have no namespace."),
        section: z
          .string()
          .optional()
          .describe("Accepted for compatibility. Backends have no sections, so a policy for one never applies."),
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
      .describe("An entry of `services`, wherever it is used as a backend."),
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
          .describe("Only routes of this kind. Default: HTTP and TCP routes with this name."),
      })
      .optional()
      .describe("A route, on every listener that it is attached to."),
    backend: backendTarget.optional().describe("A named backend or a service."),
  }),
  ["gateway", "route", "backend"],
);

const targetedPolicy = z
  .strictObject({
    name: z
      .strictObject({
        name: objectName.describe("Name of the entry, unique within `policies`."),
        namespace: namespace("default").describe("Namespace of the entry."),
      })
      .describe("Name of the entry in dumps."),
    target: policyTarget.describe("What the policy is attached to."),
    phase: z
      .enum(["route", "gateway"])
      .default("route")
      .describe(
        "`gateway`: before a route is selected. `route`: after. Policies that only backends have, such as `backendTLS`, apply " +
          "to all backends of the targeted routes; for route groups, target the routes of the group.",
      ),
    policy: z
      .strictObject({ ...routePolicies.shape, ...backendPolicies.shape, ...gatewayPolicies.shape })
      .describe("The policy; exactly one."),
  })
  .meta({
    id: "TargetedPolicy",
    description:
      "A policy attached to a target by name. Of several policies of one kind the narrowest target wins: gateway, port, " +
      "listener, route, rule; for backends gateway, port, listener, backend or service, port of the service, route, rule. A " +
      "policy written inline at the listener, route or backend wins over all of these. Exceptions: rules of `authorization` " +
      "are combined, and of `buffer` the widest target wins.",
  });

/** The whole configuration file (docs/configuration.md#top-level). */
export const configFile = z
  .strictObject({
    config: settings.prefault({}),
    adminAddr: listenAddress.optional().describe("The same as `config.adminAddr`."),
    gateways: z.record(objectName, gateway).default({}).describe("Entry points by name."),
    routes: z.array(gatewayRoute).default([]).describe("HTTP routes of gateways."),
    tcpRoutes: z.array(gatewayTcpRoute).default([]).describe("TCP and TLS routes of gateways."),
    binds: z.array(bind).default([]).describe("Ports with listeners and their routes."),
    backends: z.array(namedBackend).default([]).describe("Backends that routes refer to as `/name`."),
    policies: z
      .array(targetedPolicy)
      .default([])
      .describe("Policies attached to gateways, routes, backends or services."),
    frontendPolicies: frontendPolicies.prefault({}),
    services: z.array(service).default([]).describe("Services that backends refer to by `service`."),
    workloads: z.array(workload).default([]).describe("Endpoints of the services."),
    routeGroups: z.array(routeGroup).default([]).describe("Groups of routes that other routes delegate to."),
  })
  .meta({ title: "tracegate configuration", description: "A configuration file of tracegate." });

export type ConfigFile = z.output<typeof configFile>;
export type TargetedPolicyInput = z.output<typeof targetedPolicy>;
