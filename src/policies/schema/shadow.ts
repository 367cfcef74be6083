/**
 * `shadow`: the field that makes a policy decide without effect. It has one definition, which `schemas.ts` adds to the schema of each
 * kind whose module supports it; the field ends where a configuration is translated, see `withoutShadow`.
 */
import { z } from "zod";

const shadow = z
  .boolean()
  .optional()
  .describe(
    "Decides without effect: logs, counts and traces what the policy would have done with each request, and changes nothing. Beside it, enforced policies of the kind still apply. Default: false.",
  );

/** What users write: `shadow` beside the fields of a policy, in each item of a kind that is a list, beside `conditional`. */
type Shadowed<Written> = Written extends readonly (infer Item)[]
  ? Shadowed<Item>[]
  : Written & { readonly shadow?: boolean | undefined };

/** The schema with the field `shadow`: of an object, of the items of a list, or of each alternative of a union. */
export function shadowable<Schema extends z.ZodType>(
  schema: Schema,
): z.ZodType<Shadowed<z.output<Schema>>, Shadowed<z.input<Schema>>> {
  return withField(schema) as unknown as z.ZodType<Shadowed<z.output<Schema>>, Shadowed<z.input<Schema>>>;
}

function withField(schema: z.core.$ZodType): z.core.$ZodType {
  if (schema instanceof z.ZodObject) return described(schema.safeExtend({ shadow }), schema);
  if (schema instanceof z.ZodArray) {
    const { def } = schema._zod;
    return described(z.core.clone(schema, { ...def, element: withField(def.element) }), schema);
  }
  if (schema instanceof z.ZodUnion) {
    const { def } = schema._zod;
    return described(z.core.clone(schema, { ...def, options: def.options.map(withField) }), schema);
  }
  throw new Error("a policy with shadow is an object, a list of objects, or a union of both");
}

/** Extending drops the description. */
function described<Schema extends z.ZodType>(extended: Schema, original: z.ZodType): Schema {
  return extended.meta(original.meta() ?? {});
}
