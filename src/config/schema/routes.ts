import { z } from "zod";
import { exactlyOne } from "./exactly-one.ts";
import { backendPolicies, routePolicies } from "./policies.ts";
import { hostname, objectName, port, regex } from "./scalars.ts";

const PATHS = ["exact", "pathPrefix", "regex"] as const;
const pathText = z.string().regex(/^\//, { message: "a path begins with /" });

export const pathMatch = z
  .strictObject({
    exact: pathText.optional().describe("The whole path, byte for byte."),
    pathPrefix: pathText.optional().describe("Path segments: `/foo` matches `/foo` and `/foo/bar`, not `/foobar`."),
    regex: regex.optional(),
  })
  .check(exactlyOne(PATHS));

const value = z
  .strictObject({ exact: z.string().optional(), regex: regex.optional() })
  .check(exactlyOne(["exact", "regex"]));

const named = z.strictObject({
  name: z.string().min(1).describe("Name, or a pseudo header such as `:authority`."),
  value,
});

export const routeMatch = z.strictObject({
  path: pathMatch.optional().describe("Default: every path."),
  method: z
    .string()
    .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, { message: "not a method" })
    .optional(),
  headers: z.array(named).optional().describe("All of them must match."),
  query: z.array(named).optional().describe("All of them must match; of a repeated parameter the last value counts."),
});

/** The ways to name what a backend sends to; exactly one of them. */
export const TARGET_KEYS = ["host", "service", "backend", "dynamic", "routeGroup"] as const;

const service = z.strictObject({
  name: z
    .string()
    .regex(/^[^/]+\/[^/]+$/, { message: "write namespace/hostname" })
    .describe("`namespace/hostname`"),
  port,
});

export const target = {
  host: z.string().optional().describe("`host:port`, `ip:port` or `unix:/path`."),
  service: service.optional().describe("An entry of `services`."),
  dynamic: z.strictObject({}).optional().describe("The host that the request asks for (forward proxy)."),
};

export const routeBackend = z
  .strictObject({
    ...target,
    backend: z.string().optional().describe("A named backend: `/name`."),
    routeGroup: z.string().optional().describe("A route group that chooses further."),
    weight: z.int().min(0).max(1_000_000).default(1).describe("Share of the requests; 0 = none."),
    policies: backendPolicies.optional(),
  })
  .check(exactlyOne(TARGET_KEYS));

const routeFields = {
  name: objectName.optional().describe("Default: `route<index>`."),
  namespace: objectName.default("default"),
  ruleName: objectName.optional(),
  hostnames: z.array(hostname).default([]).describe("Default: every host of the listener."),
  matches: z.array(routeMatch).default([]).describe("Any of them must match; default: every path."),
  policies: routePolicies.optional(),
  backends: z.array(routeBackend).default([]),
};

export const route = z.strictObject(routeFields);

const gatewayRefs = z
  .union([z.string(), z.array(z.string())])
  .optional()
  .describe("`gateway` or `gateway/listener`; default: the gateway called `default`.");

export const gatewayRoute = z.strictObject({ ...routeFields, gateways: gatewayRefs });

const tcpBackend = z
  .strictObject({
    ...target,
    backend: z.string().optional(),
    weight: z.int().min(0).max(1_000_000).default(1),
  })
  .check(exactlyOne(["host", "service", "backend", "dynamic"]));

const tcpFields = {
  name: objectName.optional().describe("Default: `tcproute<index>`."),
  namespace: objectName.default("default"),
  hostnames: z.array(hostname).default([]).describe("Names of the TLS handshake (SNI)."),
  backends: z.array(tcpBackend).default([]),
};

export const tcpRoute = z.strictObject(tcpFields);
export const gatewayTcpRoute = z.strictObject({ ...tcpFields, gateways: gatewayRefs });

export const routeGroup = z.strictObject({ name: objectName, routes: z.array(route) });

export const namedBackend = z
  .strictObject({ name: objectName, host: target.host, dynamic: target.dynamic, policies: backendPolicies.optional() })
  .check(exactlyOne(["host", "dynamic"]));

export type RouteInput = z.output<typeof route>;
export type TcpRouteInput = z.output<typeof tcpRoute>;
export type RouteBackendInput = z.output<typeof routeBackend>;
