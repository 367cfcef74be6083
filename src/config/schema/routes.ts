import { z } from "zod";
import { exactlyOne } from "./exactly-one.ts";
import { backendPolicies, routePolicies, tcpPolicies } from "./policies.ts";
import { dynamicTarget, fieldName, internalPath, objectName, pathText, port, regex, routeHostname } from "./scalars.ts";

const PATHS = ["exact", "pathPrefix", "regex"] as const;

export const pathMatch = exactlyOne(
  z.strictObject({
    exact: pathText.optional().describe("The whole path, byte for byte."),
    pathPrefix: pathText.optional().describe("Path segments: `/foo` matches `/foo` and `/foo/bar`, not `/foobar`."),
    regex: regex.optional().describe("Regular expression in RE2 syntax; it must match the whole path."),
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
  name: fieldName.describe("Name in any case, or `:method`, `:scheme`, `:authority`, `:path`."),
  value: value.describe("What one of the header's lines must be."),
});

const queryMatch = z.strictObject({
  name: z.string().min(1).describe("Name of the parameter, decoded."),
  value: value.describe("What the parameter's last value must be."),
});

export const routeMatch = z
  .strictObject({
    path: z
      .union([pathMatch, z.literal("invalid")])
      .optional()
      .describe("Default: every path. `invalid` matches none."),
    method: z
      .string()
      .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, { message: "not a method" })
      .optional()
      .describe("Such as `GET`; case counts."),
    headers: z.array(headerMatch).optional().describe("All of them must match."),
    query: z
      .array(queryMatch)
      .optional()
      .describe("All of them must match; of a repeated parameter the last value counts."),
  })
  .meta({ id: "RouteMatch", description: "All of what is set must match." });

/** The ways to name what a backend sends to; exactly one of them. */
export const TARGET_KEYS = ["host", "service", "backend", "dynamic", "internal", "routeGroup", "invalid"] as const;

const service = z.strictObject({
  name: z
    .string()
    .regex(/^[^/]+\/[^/]+$/, { message: "write namespace/hostname" })
    .describe("`namespace/hostname`"),
  port: port.min(1).describe("One of the service's ports."),
});

export const target = {
  host: z.string().optional().describe("`host:port`, `ip:port` or `unix:/path`."),
  service: service.optional().describe("An entry of `services`."),
};

const dynamic = (scope: "request" | "network", otherwise: string) =>
  z
    .strictObject({
      target: dynamicTarget(scope).optional().describe(`CEL that gives \`host:port\`; default: ${otherwise}.`),
    })
    .optional()
    .describe(
      "A backend that the request itself names (forward proxy): wherever that leads, except to the gateway's own admin API. " +
        "Policies such as `authorization` say who may go where.",
    );
const dynamicHttp = dynamic("request", "the request's own host, and the port of its scheme when it names none");
const dynamicTcp = dynamic("network", "the server name of the TLS handshake, and the port that the client came to");

const internal = internalPath
  .optional()
  .describe("The gateway's own admin API and metrics: `forward` keeps the request's path, a path replaces it.");

export const routeBackend = exactlyOne(
  z.strictObject({
    ...target,
    dynamic: dynamicHttp,
    internal,
    backend: z.string().optional().describe("A named backend: `/name`."),
    routeGroup: z.string().optional().describe("A route group that chooses further."),
    invalid: z.unknown().optional().describe("An invalid backend, with any value: requests sent to it get 500."),
    weight: z.int().min(0).max(1_000_000).default(1).describe("Share of the requests; 0 = none."),
    policies: backendPolicies.optional(),
  }),
  TARGET_KEYS,
).meta({ id: "RouteBackend", description: "Where a route sends requests." });

const routeFields = {
  name: objectName.optional().describe("Default: `route<index>`."),
  namespace: objectName.default("default").describe("Part of the route's key; told apart by policies."),
  ruleName: objectName.optional().describe("Lets policies target one of several rules with the same route name."),
  hostnames: z.array(routeHostname).default([]).describe("Default: every host of the listener."),
  matches: z.array(routeMatch).default([]).describe("Any of them must match; default: every path."),
  policies: routePolicies.optional(),
  backends: z
    .array(routeBackend)
    .default([])
    .describe("Where requests go, by weight; none: 500 unless a policy answers."),
};

export const route = z
  .strictObject(routeFields)
  .meta({ id: "Route", description: "Which requests go where, and what happens to them on the way." });

const gatewayRefs = z
  .union([z.string(), z.array(z.string())])
  .optional()
  .describe("`gateway` or `gateway/listener`; default: the gateway called `default`.");

export const gatewayRoute = z
  .strictObject({ gateways: gatewayRefs, ...routeFields })
  .meta({ id: "GatewayRoute", description: "A route that names the gateways it belongs to." });

const tcpBackend = exactlyOne(
  z.strictObject({
    ...target,
    dynamic: dynamicTcp,
    backend: z.string().optional().describe("A named backend: `/name`."),
    weight: z.int().min(0).max(1_000_000).default(1).describe("Share of the connections; 0 = none."),
    policies: tcpPolicies.optional(),
  }),
  ["host", "service", "backend", "dynamic"],
).meta({ id: "TcpBackend", description: "Where a TCP route sends connections." });

const tcpFields = {
  name: objectName.optional().describe("Default: `tcproute<index>`."),
  namespace: objectName.default("default").describe("Part of the route's key."),
  ruleName: objectName.optional().describe("Lets policies target one of several rules with the same route name."),
  hostnames: z.array(routeHostname).default([]).describe("Names of the TLS handshake (SNI)."),
  policies: tcpPolicies.optional().describe("For the backends that say nothing else."),
  backends: z.array(tcpBackend).default([]).describe("Where connections go, by weight."),
};

export const tcpRoute = z.strictObject(tcpFields).meta({ id: "TcpRoute", description: "Where connections go." });
export const gatewayTcpRoute = z
  .strictObject({ gateways: gatewayRefs, ...tcpFields })
  .meta({ id: "GatewayTcpRoute", description: "A TCP route that names the gateways it belongs to." });

export const routeGroup = z
  .strictObject({
    name: objectName.describe("What `routeGroup` backends refer to."),
    routes: z.array(route).describe("The routes to choose from."),
  })
  .meta({ id: "RouteGroup", description: "Routes that `routeGroup` backends delegate to." });

export const namedBackend = exactlyOne(
  z.strictObject({
    name: objectName.describe("What routes refer to as `backend: /name`."),
    host: target.host,
    dynamic: dynamicHttp,
    internal,
    policies: backendPolicies.optional(),
  }),
  ["host", "dynamic", "internal"],
).meta({ id: "NamedBackend", description: "A backend that several routes may refer to." });

export type RouteInput = z.output<typeof route>;
export type TcpRouteInput = z.output<typeof tcpRoute>;
export type RouteBackendInput = z.output<typeof routeBackend>;
