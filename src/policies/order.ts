/**
 * The order of policies within a phase (docs/policies/README.md#order); the order in the configuration does not matter. Each
 * policy sees the request as those before it left it. The order is a security decision: what runs first can end the request
 * before what follows has seen it, so authentication precedes authorization, and both precede everything that costs or changes
 * something.
 */
import type { Phase } from "../trace/events.ts";
import type { RequestPolicyKind } from "./policy-set.ts";

type Order = Readonly<Record<Phase, readonly RequestPolicyKind[]>>;

/** Authentication and authorization, the same for a gateway and a route. */
const ADMISSION = [
  // All others see gRPC, and what they reject becomes a gRPC status.
  "grpcWeb",
  // The cheapest check, which needs nothing of the request.
  "ipAccess",
  // Preflights carry no credentials, so `cors` responds to them before authentication.
  "cors",
  // Authentication: rules below read who the client is.
  "oidc",
  "jwtAuth",
  "basicAuth",
  "apiKey",
  "satisfy",
  // After authentication, so that the service gets verified claims, and unauthenticated clients cost no call.
  "extAuthz",
  "authorization",
] as const;

export const REQUEST_ORDER = {
  // Changes after authorization: rules decide about the request of the client, not about an edited one.
  gateway: [
    ...ADMISSION,
    // Denied requests do not use up a limit, and what it rejects costs no call.
    "concurrencyLimit",
    "extProc",
    "transformations",
  ],

  route: [
    // First: the deadline counts from the start of the request and must be set before a policy waits.
    "timeout",
    // Before every policy that reads the body.
    "maxRequestBodySize",
    // Reads Accept-Encoding as the client sent it.
    "compression",
    ...ADMISSION,
    // Its precondition reads the request as the client sent it.
    "retry",
    // Denied requests do not use up a limit.
    "concurrencyLimit",
    // After the limit of requests in progress: what that rejects takes no token.
    "localRateLimit",
    // After the local limit: what that rejects costs no call.
    "remoteRateLimit",
    // Memory for bodies only after all that can reject the request by its head.
    "buffer",
    // The external processor before configured changes, which can then correct its result.
    "extProc",
    // Before all that reads headers or target: it may set them.
    "transformations",
    // Reads headers that extProc and transformations may have set.
    "csrf",
    // Headers before the URL: rewrites and redirects start from the Host that is set here.
    "requestHeaderModifier",
    // A redirect after a rewrite points to the rewritten URL.
    "urlRewrite",
    "requestRedirect",
    // Redirected requests are not delayed.
    "delay",
    // After every policy that may reject or redirect.
    "directResponse",
    // Chooses among the backends only for requests that go to one.
    "sessionPersistence",
    // Copies only requests that go to a backend, in their final form.
    "requestMirror",
  ],

  // For each attempt: authorization → extAuthz → backendAuth → transformation, then:
  backend: [
    "authorization",
    "extAuthz",
    // Before backendAuth: copies go to other services, which must not get credentials for the backend.
    "requestMirror",
    // After authorization: no token is obtained for a request that is denied.
    "backendAuth",
    "transformations",
    // After credentials, so that the configuration can still change them.
    "requestHeaderModifier",
    "requestRedirect",
  ],
} as const satisfies Order;

/** Response policies run route, then backend, then gateway; also for errors and the gateway's own responses. */
export const RESPONSE_ORDER = {
  // transformation → extProc; pages last, because both can change the status and the body
  gateway: ["transformations", "extProc", "errorPages"],
  // Configured headers first: transformations and the external processor see them.
  route: [
    "responseHeaderModifier",
    "buffer",
    "transformations",
    "extProc",
    // After everything that can change the status or the body.
    "errorPages",
    // Last: no change of Set-Cookie above drops the session's.
    "sessionPersistence",
  ],
  backend: ["responseHeaderModifier", "transformations"],
} as const satisfies Order;

/** Response policies that run after those of all phases: the others read and change bodies as the backend made them. */
export const FINAL_ORDER = {
  gateway: [],
  route: ["compression"],
  backend: [],
} as const satisfies Order;

/** Kinds with a place in some phase; `registry.ts` does not compile for others. */
export type PlacedKind = (typeof REQUEST_ORDER | typeof RESPONSE_ORDER | typeof FINAL_ORDER)[Phase][number];
