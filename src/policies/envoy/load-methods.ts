import type * as Methods from "./methods.ts";

/** Apart from `methods.ts` because what imports that statically loads all messages at start. */
let methods: Promise<typeof Methods> | undefined;

/** The gRPC methods of Envoy's API; the first call loads them. */
export function envoyMethods(): Promise<typeof Methods> {
  methods ??= import("./methods.ts");
  return methods;
}
