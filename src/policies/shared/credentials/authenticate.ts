import type { Authenticator, PolicyContext, PolicyHooks, RequestOutcome } from "../../contract/types.ts";

/** The hooks of a policy that authenticates on its own: the request passes as soon as its credential is verified. */
export function authenticatingHooks({ verify }: Pick<Authenticator, "verify">): PolicyHooks {
  return { onRequest: (context) => admitted(context, verify(context, context.trace)) };
}

function admitted(context: PolicyContext, verified: ReturnType<Authenticator["verify"]>): RequestOutcome {
  if (verified instanceof Promise)
    return verified.then((admit) => {
      admit?.(context);
      return undefined;
    });
  verified?.(context);
  return undefined;
}
