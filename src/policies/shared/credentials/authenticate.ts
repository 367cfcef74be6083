import { MissingCredential } from "../../contract/missing-credential.ts";
import type { Authenticator, PolicyContext, PolicyHooks, RequestOutcome, Verified } from "../../contract/types.ts";

/** The hooks of a policy that authenticates on its own: the request passes as soon as its credential is verified. */
export function authenticatingHooks({ verify }: Pick<Authenticator, "verify">): PolicyHooks {
  const conclude = (context: PolicyContext, found: Awaited<Verified>): undefined => {
    if (found instanceof MissingCredential) throw found.error();
    found?.(context);
  };
  return {
    onRequest(context): RequestOutcome {
      const verified = verify(context, context.trace);
      if (verified instanceof Promise) return verified.then((found) => conclude(context, found));
      return conclude(context, verified);
    },
  };
}
