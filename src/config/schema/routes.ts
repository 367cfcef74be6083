import { z } from "zod";
import { exactlyOne } from "../../policies/schema/checks.ts";
import { serviceReference } from "../../policies/schema/fields.ts";
import { dns } from "../../translation/schema/dns.ts";
import { backendPolicies, routePolicies, tcpPolicies } from "../../translation/schema/policies.ts";
import {
  dynamicTarget,
  fieldName,
  internalPath,
  objectName,
  pathText,
  regex,
  routeHostname,
} from "../../translation/schema/scalars.ts";
import { endpoints, poolLoadBalancer, poolName } from "./pools.ts";

const PATHS = ["exact", "pathPrefix", "regex"] as const;

const pathMatch = exactlyOne(
  z.strictObject({
    exact: pathText.optional().describe("The whole path, byte for byte."),
    pathPrefix: pathText
      .optional()
      .describe("Prefix of path segments: `/foo` matches `/foo` and `/foo/bar`, but not `/foobar`."),
    regex: regex.optional().describe("Regular expression in RE2 syntax. It must match the whole path."),
  }),
  PATHS,
).meta({ id: "PathMatch" });

const value = exactlyOne(
  z.strictObject({
    exact: z.string().optional().describe("The whole value, byte for byte."),
    regex: regex.optional(),
  }),
  ["exact", "regex"],
).meta({ id: "ValueMatch" });

const headerMatch = z.strictObject({
  name: fieldName.describe("Name of the header, not case-sensitive, or `:method`, `:scheme`, `:authority`, `:path`."),
  value: value.describe("Condition that one of the header's values must meet."),
});

const queryMatch = z.strictObject({
  name: z.string().min(1).describe("Name of the parameter, decoded."),
  value: value.describe("Condition that the last value of the parameter must meet."),
});

const routeMatch = z
  .strictObject({
    path: z
      .union([pathMatch, z.literal("invalid")])
      .optional()
      .describe("Default: every path. `invalid` matches none."),
    method: z
      .string()
      .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, { message: "not a method" })
      .optional()
      .describe("Such as `GET`; case-sensitive."),
    headers: z.array(headerMatch).optional().describe("All of them must match."),
    query: z
      .array(queryMatch)
      .optional()
      .describe("All of them must match. Of a repeated parameter the last value is used."),
  })
  .meta({ id: "RouteMatch", description: "All conditions that are set must match." });

/** The ways to name what a backend sends to; exactly one of them. */
const TARGET_KEYS = [
  "host",
  "endpoints",
  "service",
  "backend",
  "dynamic",
  "internal",
  "routeGroup",
  "invalid",
] as const;

const target = {
  host: z.string().optional().describe("`host:port`, `ip:port`, `srv:_service._proto.domain` or `unix:/path`."),
  endpoints,
  dns,
};

const routeTarget = {
  ...target,
  service: serviceReference.optional().describe("An entry of `services`."),
};

const dynamic = (scope: "request" | "network", otherwise: string) =>
  z
    .strictObject({
      target: dynamicTarget(scope).optional().describe(`CEL that gives \`host:port\`; default: ${otherwise}.`),
    })
    .optional()
    .describe(
      "A forward proxy: the request names its backend, which may be any host except the gateway's own ports. Restrict it " +
        "with policies such as `authorization`.",
    );
const dynamicHttp = dynamic("request", "the host of the request, with the port of its scheme if it has none");
const dynamicTcp = dynamic(
  "network",
  "the server name of the TLS handshake (SNI), with the port that the client connected to",
);

const internal = internalPath
  .optional()
  .describe("The gateway's own admin API and metrics. `forward` keeps the path of the request; a path replaces it.");

const routeBackend = exactlyOne(
  z.strictObject({
    ...routeTarget,
    dynamic: dynamicHttp,
    internal,
    backend: z.string().optional().describe("A named backend: `/name`."),
    routeGroup: z.string().optional().describe("A route group that this route delegates to."),
    invalid: z.unknown().optional().describe("An invalid backend, with any value: its requests get 500."),
    weight: z
      .int()
      .min(0)
      .max(1_000_000)
      .default(1)
      .describe("Share of the requests, relative to the other backends. 0: none."),
    name: poolName,
    loadBalancer: poolLoadBalancer,
    policies: backendPolicies.optional(),
  }),
  TARGET_KEYS,
).meta({ id: "RouteBackend", description: "Where a route sends requests." });

const routeFields = {
  name: objectName.optional().describe("Default: `route<index>`."),
  namespace: objectName.default("default").describe("Namespace of the route, part of its key; policies can target it."),
  ruleName: objectName.optional().describe("Lets policies target one of several rules with the same route name."),
  hostnames: z.array(routeHostname).default([]).describe("Default: every host of the listener."),
  matches: z.array(routeMatch).default([]).describe("One of them must match. Default: every path."),
  policies: routePolicies.optional(),
  backends: z
    .array(routeBackend)
    .default([])
    .describe("Where requests go, by weight. Without any, requests get 500 unless a policy responds."),
};

export const route = z
  .strictObject(routeFields)
  .meta({ id: "Route", description: "Which requests go to which backends, and the policies that apply to them." });

const gatewayRefs = z
  .union([z.string(), z.array(z.string())])
  .optional()
  .describe("Names of gateways, `gateway` or `gateway/listener`. Default: `default`.");

export const gatewayRoute = z
  .strictObject({ gateways: gatewayRefs, ...routeFields })
  .meta({ id: "GatewayRoute", description: "A route that attaches to gateways by name." });

const tcpBackend = exactlyOne(
  z.strictObject({
    ...routeTarget,
    dynamic: dynamicTcp,
    backend: z.string().optional().describe("A named backend: `/name`."),
    weight: z
      .int()
      .min(0)
      .max(1_000_000)
      .default(1)
      .describe("Share of the connections, relative to the other backends. 0: none."),
    name: poolName,
    loadBalancer: poolLoadBalancer,
    policies: tcpPolicies.optional(),
  }),
  ["host", "endpoints", "service", "backend", "dynamic"],
).meta({ id: "TcpBackend", description: "Where a TCP route sends connections." });

const tcpFields = {
  name: objectName.optional().describe("Default: `tcproute<index>`."),
  namespace: objectName.default("default").describe("Part of the route's key."),
  ruleName: objectName.optional().describe("Lets policies target one of several rules with the same route name."),
  hostnames: z.array(routeHostname).default([]).describe("Server names of the TLS handshake (SNI)."),
  policies: tcpPolicies.optional().describe("Defaults for the backends."),
  backends: z.array(tcpBackend).default([]).describe("Where connections go, by weight."),
};

export const tcpRoute = z.strictObject(tcpFields).meta({ id: "TcpRoute", description: "Where connections go." });
export const gatewayTcpRoute = z
  .strictObject({ gateways: gatewayRefs, ...tcpFields })
  .meta({ id: "GatewayTcpRoute", description: "A TCP route that attaches to gateways by name." });

export const routeGroup = z
  .strictObject({
    name: objectName.describe("The name that `routeGroup` backends refer to."),
    routes: z.array(route).describe("The routes of the group."),
  })
  .meta({ id: "RouteGroup", description: "Routes that `routeGroup` backends delegate to." });

export const namedBackend = exactlyOne(
  z.strictObject({
    name: objectName.describe("The name that routes refer to as `backend: /name`."),
    ...target,
    dynamic: dynamicHttp,
    internal,
    loadBalancer: poolLoadBalancer,
    policies: backendPolicies.optional(),
  }),
  ["host", "endpoints", "dynamic", "internal"],
).meta({ id: "NamedBackend", description: "A backend that routes refer to by name." });

export type RouteInput = z.output<typeof route>;
export type TcpRouteInput = z.output<typeof tcpRoute>;
