import { z } from "zod";
import { fileName } from "../shared/source-schema.ts";

export const schema = z
  .strictObject({
    cert: fileName.optional().describe("PEM file of the certificate that the gateway shows; needs `key`."),
    key: fileName.optional().describe("PEM file of its private key."),
    root: fileName
      .optional()
      .describe("PEM file of the CAs that backends are checked against. Default: those of the system."),
    hostname: z.string().min(1).optional().describe("Name to ask for and to check. Default: the host of the backend."),
    insecure: z
      .boolean()
      .default(false)
      .describe("Skips all verification of the backend's certificate, so any server can pose as the backend."),
    insecureHost: z.boolean().default(false).describe("Checks who has signed the certificate, but not its name."),
    alpn: z
      .array(z.string().min(1))
      .optional()
      .describe(
        "Protocols to offer, such as `[h2, http/1.1]`: what the backend picks is spoken. Default: the version of HTTP that `http.version` or the request asks for; nothing for TCP routes.",
      ),
    subjectAltNames: z
      .array(z.string().min(1))
      .optional()
      .describe("Names of which the certificate must have one, in place of `hostname`."),
    keyExchangeGroups: z
      .array(z.enum(["X25519", "P-256", "P-384", "X25519_MLKEM768"]))
      .min(1)
      .optional()
      .describe("Key exchanges that are offered, the preferred first. Default: the runtime's."),
  })
  .refine(({ cert, key }) => (cert === undefined) === (key === undefined), {
    message: "cert and key belong together; set both or none",
  })
  .describe("Connections to the backend use TLS.");

export type BackendTlsInput = z.output<typeof schema>;
