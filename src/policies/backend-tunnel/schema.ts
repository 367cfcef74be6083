import { z } from "zod";
import { key } from "../backend-auth/basic-schema.ts";
import { schema as backendTLS } from "../backend-tls/schema.ts";
import { service } from "../shared/service-schema.ts";

export const schema = z
  .strictObject({
    proxy: z
      .strictObject({
        host: z.string().optional().describe("`host:port`, `ip:port` or `unix:/path` of the proxy."),
        service: service.service,
        backend: z
          .string()
          .optional()
          .describe("A named backend: `/name`; of its policies `backendTLS` and `backendAuth.key` count."),
      })
      .describe("The proxy: one of `host`, `service` and `backend`."),
    policies: z
      .strictObject({
        backendTLS: backendTLS.optional().describe("Connections to the proxy itself use TLS."),
        backendAuth: z
          .strictObject({
            key: key.describe(
              "Credential in a header's form; a text alone is sent as `Proxy-Authorization: Bearer …`.",
            ),
          })
          .optional()
          .describe("What the proxy asks for in Proxy-Authorization."),
      })
      .optional()
      .describe("For the proxy; they win over those of a named backend."),
  })
  .describe(
    "Connections to the backend go through an HTTP proxy: with TLS, and for TCP routes, by CONNECT; without, the proxy gets the requests to forward, with the backend's address as their Host.",
  );

export type BackendTunnelInput = z.output<typeof schema>;
