/** The events of a GET without policies (decision 58). */
export const SEQUENCE_GET: readonly string[] = [
  "requestStarted",
  "requestSnapshot initial request",
  "policySelection gateway",
  "requestSnapshot gateway policies",
  "routeSelection",
  "policySelection route",
  "requestSnapshot route policies",
  "policySelection backend",
  "requestSnapshot final request",
  "backendCallStart",
  "backendCallResult",
  "responseSnapshot raw response",
  "responseSnapshot backend response ready",
  "responseSnapshot final response",
  "bodySnapshot response",
  "requestFinished",
];

/** Fields of `requestState` by stage, sorted. */
export const REQUEST_STATE_KEYS: Readonly<Record<string, readonly string[]>> = {
  "initial request": ["destination", "env", "request", "source"],
  "gateway policies": ["destination", "env", "request", "source"],
  "route policies": ["destination", "env", "request", "source"],
  "final request": ["backend", "destination", "env", "request", "source"],
  "raw response": ["env", "proxy", "response"],
  "backend response ready": ["env", "response"],
  "final response": ["env", "response"],
};
