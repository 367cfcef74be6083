import { z } from "zod";
import type { Scope } from "../../cel/index.ts";
import { expression } from "./cel.ts";
import { conditionally } from "./conditional.ts";
import type { ConfigOf } from "./resolved.ts";

function side(scope: Scope, pseudo: string) {
  const values = z.record(z.string(), expression(scope));
  return z.strictObject({
    metadata: values
      .optional()
      .describe("Values that later expressions, including those over the response, read as `metadata.<name>`."),
    replace: expression(scope)
      .optional()
      .describe("CEL that returns a map of names to values, which replaces all headers."),
    add: values.optional().describe(`Headers to add, with CEL for the value. Also sets ${pseudo}.`),
    set: values.optional().describe(`Headers to set, with CEL for the value. Also ${pseudo}.`),
    remove: z.array(z.string()).optional().describe("Names of headers to remove."),
    body: expression(scope)
      .optional()
      .describe("CEL for a new body: strings and bytes are sent as they are, lists and maps as JSON."),
  });
}

const plain = z
  .strictObject({
    request: side("request", "`:method`, `:path`, `:authority` and `:scheme`")
      .optional()
      .describe("Changes to the request, in the order metadata, replace, add, set, remove, body."),
    response: side("response", "`:status`").optional().describe("Changes to the response, in the same order."),
  })
  .meta({
    id: "Transformations",
    description:
      "Changes requests and responses by CEL. A header whose expression fails is removed; a body whose expression fails becomes empty. If an expression reads a body that is longer than `maxBufferSize`, the request is rejected with 413, or the response is replaced by 502; bodies that no expression reads may be of any length.",
  });

/** For callouts, which have no response side. */
export const callSchema = z
  .strictObject({
    request: side("request", "`:method`, `:path` and `:authority`")
      .optional()
      .describe(
        "Changes to the callout, which expressions read as `request`; the other variables are those of the client's request.",
      ),
  })
  .meta({ id: "CallTransformations", description: "Changes calls to the service by CEL." });

export const schema = conditionally("Transformations", plain, plain);

export type Transformations = ConfigOf<typeof plain>;
/** One side of them. */
export type Transformation = NonNullable<Transformations["request"]>;
