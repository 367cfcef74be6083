import { z } from "zod";
import { headerModifier } from "../shared/field-schemas.ts";
import { callSchema as transformations } from "../transformations/schema.ts";
import { backendTLS, backendTunnel, http, tcp } from "../upstream-settings/schema.ts";

/** `policies` of a service that the gateway calls; `backendAuth` is what holds for such calls. */
export function callPolicySchema<Auth extends z.ZodType>(backendAuth: Auth) {
  return z.strictObject({
    backendTLS: backendTLS
      .optional()
      .describe("Connections use TLS; for gRPC `h2` alone is offered, whatever `alpn` says."),
    http: http
      .optional()
      .describe("`requestTimeout` is the default of `timeout`; gRPC has no other version than HTTP/2."),
    tcp: tcp.optional().describe("Settings of sockets; those of gRPC are opened within `timeout`."),
    backendTunnel: backendTunnel.optional().describe("Connections go through an HTTP proxy; those of gRPC by CONNECT."),
    backendAuth: backendAuth
      .optional()
      .describe("Adds credentials for the service, within `timeout`; for gRPC as metadata."),
    transformations: transformations
      .optional()
      .describe("Changes the call by CEL, after its credentials are there; for gRPC its metadata alone."),
    requestHeaderModifier: headerModifier.optional().describe("Changes headers of the call, or its metadata for gRPC."),
  });
}
