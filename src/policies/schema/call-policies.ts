/** Schema of `policies` of a service. Apart from `call.ts`, because token endpoints, which `backendAuth` calls, have it too. */
import { z } from "zod";
import { headerModifier } from "./fields.ts";
import { callSchema as transformations } from "./transformations.ts";
import { backendTLS, backendTunnel, http, tcp } from "./upstream-settings.ts";

/** `backendAuth`: the credentials that these calls may have; those of token endpoints cannot call token endpoints again. */
export function callPolicySchema<Auth extends z.ZodType>(backendAuth: Auth) {
  return z.strictObject({
    backendTLS: backendTLS
      .optional()
      .describe("TLS for connections to the service. For gRPC, only `h2` is offered; `alpn` is ignored."),
    http: http
      .optional()
      .describe("HTTP settings. `requestTimeout` is the default of `timeout`. gRPC always uses HTTP/2."),
    tcp: tcp.optional().describe("TCP settings. For gRPC, `timeout` includes connecting."),
    backendTunnel: backendTunnel.optional().describe("Connects through an HTTP proxy; for gRPC always by CONNECT."),
    backendAuth: backendAuth
      .optional()
      .describe("Adds credentials for the service, within `timeout`; for gRPC as metadata."),
    transformations: transformations
      .optional()
      .describe("Changes the call by CEL, after credentials were added. For gRPC, only metadata can change."),
    requestHeaderModifier: headerModifier
      .optional()
      .describe("Changes the headers of the call, or its metadata for gRPC."),
  });
}
