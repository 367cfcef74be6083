import { z } from "zod";
import { calledService } from "../schema/call.ts";
import { expression } from "../schema/cel.ts";
import type { ConfigOf, Resolved } from "../schema/resolved.ts";
import { body, cacheOf } from "./schema.ts";

const grpc = z
  .strictObject({
    context: z.record(z.string(), z.string()).optional().describe("Sent as `context_extensions`."),
    metadata: z
      .record(z.string(), expression("network"))
      .optional()
      .describe("Name → CEL, sent as filter metadata of `envoy.filters.http.ext_authz`."),
  })
  .describe(
    "Envoy's `envoy.service.auth.v3.Authorization/Check` with the two addresses of the connection. The default.",
  );

/** For fields of `extAuthz` that concern a request or its response: translation warns that they have no effect here. */
const NO_REQUEST = "Accepted without effect: there is no request yet, and rejected clients get no response.";

const http = z
  .strictObject({
    path: expression("network")
      .optional()
      .describe("CEL for the path and query of the authorization request. Default: `/`."),
    body: expression("network").optional().describe("CEL for the body of the authorization request. Default: none."),
    redirect: z.string().optional().describe(NO_REQUEST),
    includeResponseHeaders: z.array(z.string()).optional().describe(NO_REQUEST),
    addRequestHeaders: z
      .record(z.string(), expression("network"))
      .default({})
      .describe(
        "Headers of the authorization request: name → CEL; `:method`, `:path` and `:authority` can be set too. The service learns nothing else about the client.",
      ),
    metadata: z
      .record(z.string(), expression("networkResponse"))
      .default({})
      .describe(
        "Name → CEL over the service's `response`; requests on this connection read the value as `extauthz.<name>`.",
      ),
  })
  .describe("A GET request; 2xx allows.");

/** `frontendPolicies.networkExtAuthz` (docs/configuration.md#networkextauthz): as `extAuthz`, but about a connection. */
export const networkSchema = z
  .strictObject({
    ...calledService("Deadline for the authorization response."),
    protocol: z
      .union([z.strictObject({ grpc }), z.strictObject({ http })])
      .default({ grpc: {} })
      .describe("Protocol of the service. Default: gRPC."),
    failureMode: z
      .union([z.literal(["allow", "deny"]), z.strictObject({ denyWithStatus: z.int().min(200).max(599) })])
      .default("deny")
      .describe(
        "What happens when the service fails or cannot be reached. `allow` logs a warning at most every ten seconds; a status is equal to `deny`. Default: `deny`.",
      ),
    includeRequestHeaders: z.array(z.string()).optional().describe(NO_REQUEST),
    includeRequestBody: body.optional().describe(NO_REQUEST),
    cache: cacheOf("network")
      .optional()
      .describe("Caches decisions, for each port: those that allow, and denials with 401 or 403."),
  })
  .meta({
    id: "NetworkExtAuthz",
    description:
      "Authorizes connections by an external service, once per connection, after `networkAuthorization` and before the " +
      "first request. CEL reads `source`, `destination` and `env`. Rejected connections are closed without a response.",
  });

type Written = z.output<typeof networkSchema>;
type WrittenHttp = z.output<typeof http>;

/** What runs: without the fields that do nothing for connections. Rejected clients get no response that could have a status. */
export type NetworkExtAuthz = Omit<
  Resolved<Written>,
  "protocol" | "failureMode" | "includeRequestHeaders" | "includeRequestBody"
> & {
  readonly protocol:
    | { readonly grpc: ConfigOf<typeof grpc> }
    | { readonly http: Resolved<Omit<WrittenHttp, "redirect" | "includeResponseHeaders">> };
  readonly failureMode: "allow" | "deny";
};
