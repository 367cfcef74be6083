/**
 * In which order the policies of a phase run (reference 4.1, steps 6, 8, 10 and 11), whatever order the configuration names
 * them in. A policy that runs sees what those before it have made of the request.
 */

import type { Phase } from "../trace/events.ts";
import type { RequestPolicyKind } from "./policy-set.ts";

type Order = Readonly<Record<Phase, readonly RequestPolicyKind[]>>;

/** Who may come in, the same for a gateway and a route. */
const ADMISSION = [
  // Preflights carry no credentials, so they are answered first.
  "cors",
  // Who the client is must be known before what it may do.
  "oidc",
  "jwtAuth",
  "basicAuth",
  "apiKey",
  // A service is asked about clients that are known.
  "extAuthz",
  "authorization",
] as const;

export const REQUEST_ORDER = {
  // Only an allowed request is worth changing.
  gateway: [...ADMISSION, "extProc", "transformations"],

  route: [
    // Deadlines count from the start of the request and so must be known before anything can wait.
    "timeout",
    ...ADMISSION,
    // Over the request as the client sent it.
    "retry",
    // Only what is allowed counts.
    "localRateLimit",
    // What a limit of this process refuses costs no call.
    "remoteRateLimit",
    // After whatever may refuse the request by its head alone.
    "buffer",
    // A program of one's own before the rules that are configured.
    "extProc",
    // Before everything that goes by the request's headers and target: it may make them.
    "transformations",
    // By the headers that programs may have mended.
    "csrf",
    // Headers before the URL: a Host that is set here is what a rewrite of the port or a redirect starts from.
    "requestHeaderModifier",
    // A redirect that follows a rewrite points to the rewritten place.
    "urlRewrite",
    "requestRedirect",
    // Who is redirected need not wait.
    "delay",
    // Last, so that every policy that may reject or redirect comes before an answer.
    "directResponse",
    // Only what goes to a backend is copied, as it goes there.
    "requestMirror",
  ],

  // For each attempt: authorization → extAuthz → backendAuth → transformation, then:
  backend: [
    "authorization",
    "extAuthz",
    // Copies go to others than the backend, and have none of its credentials.
    "requestMirror",
    // For those that may be called only.
    "backendAuth",
    "transformations",
    // After the credentials, so that configuration has the last word about what is sent.
    "requestHeaderModifier",
    "requestRedirect",
  ],
} as const satisfies Order;

/** The phases answer in the order route, backend, gateway; also for errors and for responses of the gateway's own. */
export const RESPONSE_ORDER = {
  // transformation → extProc
  gateway: ["transformations", "extProc"],
  // responseHeaderModifier → buffer → transformation → extProc: programs see the headers that are configured.
  route: ["responseHeaderModifier", "buffer", "transformations", "extProc"],
  backend: ["responseHeaderModifier", "transformations"],
} as const satisfies Order;

/** The kinds that have a place in some phase. */
export type PlacedKind = (typeof REQUEST_ORDER | typeof RESPONSE_ORDER)[Phase][number];
