import { z } from "zod";
import { expression } from "../schema/cel.ts";
import { conditionally } from "../schema/conditional.ts";
import type { ConfigOf } from "../schema/resolved.ts";

const plain = z
  .strictObject({
    status: z.int().min(200).max(599).describe("Status code of the response."),
    body: z
      .union([z.string(), z.array(z.int().min(0).max(255))])
      .optional()
      .describe(
        "Response body: text, or a list of byte values. Default: empty. `content-type` is not set automatically.",
      ),
    bodyExpression: expression("request")
      .optional()
      .describe("CEL for the body: strings and bytes are sent as they are, lists and maps as JSON."),
    headers: z
      .record(z.string(), expression("request"))
      .optional()
      .describe("Headers of the response, with CEL for the value; a header whose expression fails is left out."),
  })
  .meta({ id: "DirectResponse", description: "Responds with a fixed response instead of calling a backend." });

export const schema = conditionally("DirectResponse", plain, plain);

export type DirectResponse = ConfigOf<typeof plain>;
