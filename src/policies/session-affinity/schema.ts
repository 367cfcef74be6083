import { z } from "zod";
import { expression } from "../shared/cel-schema.ts";

export const schema = z
  .strictObject({
    source: expression("request").describe(
      'CEL over the request that gives a string or bytes, such as `request.headers["x-user"]`; when it fails or is empty, any endpoint is chosen.',
    ),
  })
  .describe(
    "Sends requests with the same value to the same endpoint of a `service`. When an endpoint comes, goes or is evicted, only its own requests move.",
  );
