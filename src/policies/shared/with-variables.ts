import type { Activation } from "../../cel/index.ts";

/**
 * `base` with other values for some variables. Those of `base` are looked up when an expression reads them, on the object
 * itself, which may keep them in private fields.
 */
export function withVariables(base: Activation, own: Partial<Activation>): Activation {
  return new Proxy(base, {
    get: (variables, name) =>
      Object.hasOwn(own, name) ? Reflect.get(own, name) : Reflect.get(variables, name, variables),
  });
}
