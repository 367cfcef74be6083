import { z } from "zod";
import { duration } from "../shared/duration-schema.ts";
import { poolLimits } from "../shared/pool-limits-schema.ts";

export const schema = z
  .strictObject({
    version: z
      .enum(["HTTP/1.1", "HTTP/2.0"])
      .optional()
      .describe(
        "Version to speak with the backend; `HTTP/2.0` without TLS as h2c with prior knowledge. Default: what `appProtocols` of the service says, else HTTP/2 for gRPC from clients inside TLS and HTTP/1.1 for everything else.",
      ),
    requestTimeout: duration
      .optional()
      .describe("From the call to the response's head; replaces `timeout.backendRequestTimeout`; else 504."),
    ...poolLimits("requests"),
  })
  .describe("How HTTP is spoken with a backend.");
