import type * as Methods from "./methods.ts";

/** Apart from `methods.ts`: a static import of that would load all messages at start-up, for gateways without such policies too. */
let methods: Promise<typeof Methods> | undefined;

/** The gRPC methods of Envoy's API. The first call loads them. */
export function envoyMethods(): Promise<typeof Methods> {
  methods ??= import("./methods.ts");
  return methods;
}
