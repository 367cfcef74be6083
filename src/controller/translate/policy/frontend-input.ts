import type { Frontend } from "../../../ir/ir.ts";
import type { CallContext } from "../../../translation/called-targets.ts";
import {
  type Calling,
  translateAccessLog,
  translateFrontend,
  translateNetworkExtAuthz,
  translateTracing,
} from "../../../translation/frontend.ts";
import type { FrontendInput } from "../../../translation/schema/frontend.ts";
import { settings } from "../../../translation/schema/settings.ts";

const LOGGING = settings.parse({}).logging;

/** `spec.frontend` of policies as the frontend of a bind, with the parts that call services. */
export function translateFrontendInput(
  input: FrontendInput,
  context: CallContext,
): { readonly frontend: Frontend; readonly calling: Calling } {
  const networkExtAuthz = translateNetworkExtAuthz(input, context);
  const accessLog = translateAccessLog(input, LOGGING, context);
  const { tracing } = input;
  const calling: Calling = {
    ...(networkExtAuthz !== undefined && { networkExtAuthz }),
    ...(accessLog !== undefined && { accessLog }),
    ...(tracing !== undefined && { tracing: translateTracing(tracing, ["frontendPolicies", "tracing"], context) }),
  };
  return { frontend: translateFrontend(input, calling), calling };
}
