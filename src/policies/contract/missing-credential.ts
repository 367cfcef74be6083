import type { GatewayError } from "../../base/errors.ts";

/**
 * The request has no credential, or a session that has ended, and the policy requires one. `error` is made only for a request that ends: with its stack, it takes 7 µs,
 * twice as long as all else that a policy does for a valid key.
 */
export class MissingCredential {
  readonly error: () => GatewayError;

  constructor(error: () => GatewayError) {
    this.error = error;
  }
}
