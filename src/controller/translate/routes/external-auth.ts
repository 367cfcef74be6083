/** The filter ExternalAuth (GEP-1494, experimental) as `extAuthz`. */
import { ms } from "../../../base/durations.ts";
import type { ExternalAuthFilter } from "../../../kube/objects.ts";
import { schema } from "../../../policies/ext-authz/schema.ts";
import { callPoliciesOf } from "../../../policies/merge.ts";
import type { PolicySet } from "../../../policies/policy-set.ts";
import { type Referrer, resolveBackend } from "../backends/backend-refs.ts";
import { mergeAttached } from "../policy/policies.ts";

/** As for `extAuthz` of the configuration file. */
const TIMEOUT = ms(2000);

/** The rule of the filter, and the path in it. */
interface Place {
  readonly rule: number;
  readonly path: string;
}

/** undefined: the authorization service does not exist, so requests must not pass. */
export function translateExternalAuth(
  filter: ExternalAuthFilter,
  place: Place,
  referrer: Referrer,
): PolicySet["extAuthz"] {
  const { target, policies, targets } = resolveBackend(
    referrer,
    filter.backendRef,
    `rules[${place.rule}].${place.path}.externalAuth`,
  );
  const parsed = schema.safeParse({ ...protocolOf(filter, place, referrer), ...bodyOf(filter) });
  if (!parsed.success) {
    const why = parsed.error.issues.map(({ message }) => message).join("; ");
    referrer.findings.invalidates(place.rule, `${place.path}.externalAuth: ${why}`);
    return undefined;
  }
  if (target.type === "invalid" || "conditional" in parsed.data) return undefined;
  const {
    host: _host,
    service: _service,
    backend: _backend,
    policies: _policies,
    timeout: _timeout,
    ...settings
  } = parsed.data;
  const calls = callPoliciesOf(mergeAttached(referrer.read, "backend", targets, policies).set);
  return { ...settings, target, timeout: TIMEOUT, ...(Object.keys(calls).length > 0 && { policies: calls }) };
}

function protocolOf({ protocol, grpc = {}, http = {} }: ExternalAuthFilter, place: Place, referrer: Referrer): object {
  if (protocol === "GRPC") return { protocol: { grpc: {} }, includeRequestHeaders: [...(grpc.allowedHeaders ?? [])] };
  const { path, allowedHeaders = [], allowedResponseHeaders = [] } = http;
  if (allowedResponseHeaders.length === 0)
    referrer.findings.invalidates(
      place.rule,
      `${place.path}.externalAuth.http.allowedResponseHeaders: list the headers that backends get; sending all of them is not supported`,
    );
  return {
    protocol: {
      http: {
        ...(path !== undefined && path !== "" && { path: `${JSON.stringify(path)} + request.pathAndQuery` }),
        includeResponseHeaders: [...allowedResponseHeaders],
        addRequestHeaders: { ":authority": "request.host" },
      },
    },
    includeRequestHeaders: ["authorization", ...allowedHeaders],
  };
}

/** Longer bodies are rejected with 413. */
function bodyOf({ forwardBody: { maxSize = 0 } = {} }: ExternalAuthFilter): object {
  return maxSize === 0 ? {} : { includeRequestBody: { maxRequestBytes: maxSize } };
}
