import { z } from "zod";
import type { ConfigOf } from "../schema/resolved.ts";

export const schema = z
  .strictObject({})
  .describe(
    'Lets browsers call gRPC services: translates gRPC-Web (`application/grpc-web` and `application/grpc-web-text`) to gRPC over HTTP/2 and back, message by message. A request with frames that are not messages, or that ends within a message, fails with status 13 (INTERNAL). Requests of other types pass unchanged. Pages of other origins also need `cors` with `allowHeaders: ["*"]` and `exposeHeaders: [grpc-status, grpc-message, grpc-status-details-bin]`.',
  );

/** What runs: there is nothing to configure. */
export type GrpcWeb = ConfigOf<typeof schema>;
