import type { CallPolicies } from "../../ir/policies.ts";
import type { PrepareCall } from "../../upstream/callout.ts";
import { create as backendAuth } from "../backend-auth/index.ts";
import type { PolicyDeps } from "../deps.ts";
import { create as requestHeaderModifier } from "../request-header-modifier/index.ts";
import { OwnFields } from "../shared/own-fields.ts";
import type { Asker, OutgoingContext } from "../types.ts";
import { callTransformer } from "./transform.ts";

/** For calls that are about no request. */
const NOBODY: Asker = { findings: {}, trace: undefined, variables: {} };

/**
 * What is done to each request for a service before it is sent, in the order of the backend phase; undefined = nothing. What
 * is about connections is up to the pool. Throws for keys, credentials and headers that cannot be used.
 */
export function compileCallPolicies(
  { backendAuth: auth, transformations, requestHeaderModifier: modifier }: CallPolicies,
  deps: Pick<PolicyDeps, "hidden" | "callouts" | "credentials">,
): PrepareCall<Asker> | undefined {
  const credentials = auth && backendAuth(auth, deps);
  const headers = modifier && requestHeaderModifier(modifier, { ...deps, ownFields: new OwnFields() });
  const transform = transformations && callTransformer(transformations);
  if (credentials === undefined && transform === undefined && headers === undefined) return undefined;
  return (request, asker = NOBODY) => {
    const { findings, trace, span } = asker;
    const context: OutgoingContext = {
      request,
      findings,
      trace,
      span,
      get variables() {
        return asker.variables;
      },
      authorityMode: "auto",
    };
    const finish = (): void => {
      transform?.(request, asker);
      headers?.onRequest(context);
    };
    const waiting = credentials?.onRequest(context);
    if (waiting instanceof Promise) return waiting.then(finish);
    finish();
    return undefined;
  };
}
