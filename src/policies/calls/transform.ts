import type { CelEnvironment } from "../../cel/index.ts";
import type { CallHead } from "../../upstream/callout.ts";
import { withVariables } from "../shared/with-variables.ts";
import { EditedRequest } from "../transformations/messages.ts";
import { compileProgram } from "../transformations/program.ts";
import type { Transformations } from "../transformations/schema.ts";
import type { CalloutContext, RequestMetadata } from "../types.ts";

const NOTHING = new Uint8Array(0);

/**
 * What `transformations.request` does to a call: expressions read the call as `request`, and what is known of the client that
 * it is made for. What it sets aside as `metadata` is for this call alone. Throws as `compileProgram`; undefined = nothing.
 */
export function callTransformer(
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
