import type { CelEnvironment } from "../../cel/index.ts";
import type { CallHead, PrepareCall } from "../../upstream/callout.ts";
import { prepareCredentials } from "../backend-auth/index.ts";
import type { PolicyDeps } from "../deps.ts";
import { within } from "../policy-error.ts";
import { prepareRequestEdits } from "../request-header-modifier/index.ts";
import { withVariables } from "../shared/expressions.ts";
import { OwnFields } from "../shared/own-fields.ts";
import { EditedRequest } from "../transformations/messages.ts";
import { compileProgram } from "../transformations/program.ts";
import type { Transformations } from "../transformations/schema.ts";
import type { CalloutContext, OutgoingContext, RequestMetadata } from "../types.ts";
import type { CallPolicies } from "./schema.ts";

/** For calls that are about no request. */
const NO_CALLOUT_CONTEXT: CalloutContext = { requestMetadata: {}, trace: undefined, variables: {} };

/**
 * What is done to each request for a service before it is sent, in the order of the backend phase; undefined = nothing. What
 * is about connections is up to the pool. Throws for keys, credentials and headers that cannot be used.
 */
export function compileCallPolicies(
  { backendAuth: auth, transformations, requestHeaderModifier: modifier }: CallPolicies,
  deps: Pick<PolicyDeps, "hidden" | "callouts" | "credentials" | "cel">,
): PrepareCall<CalloutContext> | undefined {
  const credentials = auth && within(["backendAuth"], () => prepareCredentials(auth, deps.cel))(deps);
  const edits = modifier && within(["requestHeaderModifier"], () => prepareRequestEdits(modifier));
  const headers = edits?.({ ...deps, ownFields: new OwnFields() });
  const transform = transformations && callTransformer(transformations, deps.cel);
  if (credentials === undefined && transform === undefined && headers === undefined) return undefined;
  return (request, calloutContext = NO_CALLOUT_CONTEXT) => {
    const { requestMetadata, trace, span } = calloutContext;
    const context: OutgoingContext = {
      request,
      requestMetadata,
      trace,
      span,
      get variables() {
        return calloutContext.variables;
      },
      authorityMode: "auto",
    };
    const finish = (): void => {
      transform?.(request, calloutContext);
      headers?.onRequest(context);
    };
    const waiting = credentials?.onRequest(context);
    if (waiting instanceof Promise) return waiting.then(finish);
    finish();
    return undefined;
  };
}

const NOTHING = new Uint8Array(0);

/**
 * What `transformations.request` does to a call: expressions read the call as `request`, and what is known of the client that
 * it is made for. What it sets aside as `metadata` is for this call alone. Throws as `compileProgram`; undefined = nothing.
 */
function callTransformer(
  { request }: Transformations,
  cel: CelEnvironment,
): ((call: CallHead, calloutContext: CalloutContext) => void) | undefined {
  if (request === undefined) return undefined;
  const program = compileProgram(["transformations", "request"], request, "request", cel);
  return (call, { requestMetadata, trace, variables }) => {
    const metadata = { ...requestMetadata.metadata };
    const own: RequestMetadata = { metadata };
    const message = new EditedRequest({
      request: call,
      authorityMode: "fixed",
      requestBody: {
        buffer: async () => call.body ?? NOTHING,
        replace(bytes) {
          call.body = bytes;
        },
      },
    });
    const failed = program.run(message, withVariables(variables, { request: call, metadata }), own);
    if (failed === undefined) trace?.applied("transformation", { side: "request" });
    else trace?.failed("transformation", { side: "request", failed });
  };
}
