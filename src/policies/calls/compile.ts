/**
 * The `policies` of callouts: what is done to a request for a service before it is sent. In: resolved policies. Out: one function
 * per place, called by the upstream room for each call, or undefined where there is nothing to do. Settings of connections
 * (`backendTLS`, `http`, `tcp`, `backendTunnel`) are not applied here: the connection pool has them from the target.
 */
import { type CelEnvironment, overlaid } from "../../cel/index.ts";
import type { CalloutHead, PrepareCallout } from "../../upstream/callouts/callout.ts";
import { prepareCredentials } from "../backend-auth/index.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import { OwnFields } from "../contract/own-fields.ts";
import { within } from "../contract/policy-error.ts";
import type { CalloutContext, OutgoingContext, RequestMetadata } from "../contract/types.ts";
import { prepareRequestEdits } from "../request-header-modifier/index.ts";
import type { CallPolicies } from "../schema/call.ts";
import type { Transformations } from "../schema/transformations.ts";
import { EditedRequest } from "../transformations/messages.ts";
import { compileProgram, decisions } from "../transformations/program.ts";

/** For calls without a client's request, such as those for a connection. */
const NO_CALLOUT_CONTEXT: CalloutContext = { requestMetadata: {}, trace: undefined, variables: {} };

/**
 * Compiles the policies in the order of the backend phase: credentials, transformations, header fields. Throws a PolicyError for
 * credentials and fields that are not valid, CelError for expressions that do not compile.
 */
export function compileCallPolicies(
  { backendAuth: auth, transformations, requestHeaderModifier: modifier }: CallPolicies,
  deps: Pick<PolicyDeps, "hidden" | "callouts" | "credentials" | "cel">,
): PrepareCallout<CalloutContext> | undefined {
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
    // Credentials may have to be fetched or signed; everything else is synchronous.
    const waiting = credentials?.onRequest(context);
    if (waiting instanceof Promise) return waiting.then(finish);
    finish();
    return undefined;
  };
}

const NOTHING = new Uint8Array(0);

/**
 * `transformations.request` for calls. Expressions read the call as `request`; the other variables describe the client's request
 * that the call is for. `metadata` that they set is visible to this call only: another call must not depend on which came first.
 * Throws like `compileProgram`.
 */
function callTransformer(
  { request }: Transformations,
  cel: CelEnvironment,
): ((call: CalloutHead, calloutContext: CalloutContext) => void) | undefined {
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
    const failures = program.run(message, overlaid(variables, { request: call, metadata }), own, () => {});
    trace?.report(decisions, { code: failures === undefined ? "changed" : "partly", side: "request", failures });
  };
}
