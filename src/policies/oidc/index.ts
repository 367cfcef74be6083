/**
 * `oidc` (docs/policies/oidc.md): logs browsers in with an OpenID Connect provider, by the authorization code flow with PKCE,
 * state and nonce. In: the provider's endpoints and keys, resolved from its discovery document. Out: claims of the ID token as
 * `jwt`, a redirect to the provider, or an error of the login. Runs in the gateway and route phases.
 *
 * The gateway keeps no sessions. State lives in cookies sealed with OIDC_COOKIE_SECRET, so every worker and replica can read it:
 * `flow.ts` has the steps, `transaction.ts` the login under way, `session.ts` the logged-in user, `provider.ts` the protocol.
 */
import type { GatewayError } from "../../base/errors.ts";
import { REDACTED } from "../../base/redaction.ts";
import { getHeader, type HttpRequest } from "../../http/message/message.ts";
import type { Phase } from "../../trace/events.ts";
import { applied, Decisions, rejected, skipped } from "../contract/decisions.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import { PolicyError } from "../contract/policy-error.ts";
import type { PolicyContext, PolicyHooks, RequestOutcome } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import type { Opened } from "../shared/sealed.ts";
import { COOKIE_SECRET } from "./cookie-key.ts";
import { type Cookies, takeCookies } from "./cookies.ts";
import { LoginError, type LoginProblem, PROBLEM_TEXTS } from "./failure.ts";
import { LoginFlow } from "./flow.ts";
import { Provider } from "./provider.ts";
import type { Oidc } from "./schema.ts";

const KIND = "oidc";
/** Parameters of the callback: a reader of a log could complete the login with them (RFC 9700, sections 4.2 and 4.5). */
const SECRET_PARAMETERS = ["code", "state"];
/** `Sec-Fetch-Dest` of requests that can show a login page; an image or a script's request would follow the redirect in vain. */
const PAGES = new Set(["document", "frame", "iframe", "fencedframe", "embed", "object"]);

type Found = Opened["state"] | "missing";
type OidcDecision =
  | { readonly code: "session"; readonly expires: number }
  | { readonly code: "preflight" | "notFetched" | "loggedIn" }
  | { readonly code: "refused" | "login"; readonly session: Found }
  | { readonly code: LoginProblem; readonly why: string | undefined };

const decisions = new Decisions<OidcDecision>(KIND, {
  session: ({ expires }) => {
    const until = new Date(expires * 1000).toISOString();
    return applied(`the session is valid until ${until}`, { action: "session", expires: until });
  },
  preflight: () => skipped("a CORS preflight carries no cookies"),
  notFetched: () => {
    const reason = "the provider's discovery document or key set has not been fetched yet";
    return rejected(reason, { action: "reject", reason });
  },
  refused: ({ session }) =>
    rejected(`${sessionText(session)}, and the request is not one that can show a login page`, {
      action: "reject",
      session,
    }),
  login: ({ session }) =>
    applied(`${sessionText(session)}: redirects to the provider's login`, { action: "login", session }),
  loggedIn: () => applied("the login is complete: redirects to its start", { action: "callback", result: "logged in" }),
  ...PROBLEM_TEXTS,
});

function sessionText(session: Found): string {
  return session === "missing" ? "the request has no session" : `the session is ${session}`;
}

export const oidc = definePolicy({
  decisions,
  kind: KIND,
  phases: ["gateway", "route"],
  prepare(config: Oidc) {
    const provider = new Provider(config);
    return (deps) => hooksOf(config, provider, deps);
  },
  redact: ({ jwksUrl: _url, ...config }) => ({ ...config, clientSecret: REDACTED }),
});

/** Binds the policy to a data plane. Throws PolicyError without a key for the cookies, which comes from the environment. */
function hooksOf(config: Oidc, provider: Provider, deps: PolicyDeps): PolicyHooks {
  const { oidcCookieKey, credentials, phase, fetch, wantDocument, assumedCredential } = deps;
  if (oidcCookieKey === undefined)
    throw PolicyError.at(
      [KIND],
      `${COOKIE_SECRET} is required when oidc is configured; set this environment variable to 64 hexadecimal digits, such as openssl rand -hex 32 prints`,
    );
  const flow = new LoginFlow(config, oidcCookieKey, fetch, provider);
  credentials.addAt(flow.path, SECRET_PARAMETERS);
  const { jwksUrl, incomplete = false } = config;
  if (jwksUrl !== undefined) provider.onUnknownKey = () => wantDocument?.(jwksUrl);
  return {
    onRequest(context) {
      const cookies = ownCookies(context);
      const callback = flow.callbackOf(context.request);
      if (callback === undefined) return check(context, flow, cookies, phase, incomplete, assumedCredential);
      if (incomplete) throw notFetched(context);
      return finish(context, flow, callback, cookies);
    },
  };
}

/** How long an assumed session is still valid. */
const ASSUMED_MS = 3_600_000;

/** `phase`: that of the policy. Identifies the user by the session; redirects users without one to the provider. */
function check(
  context: PolicyContext,
  flow: LoginFlow,
  cookies: Cookies,
  phase: Phase,
  incomplete: boolean,
  assumedCredential: PolicyDeps["assumedCredential"],
): RequestOutcome {
  const { request, trace } = context;
  const assumed = assumedCredential?.("oidc", undefined, request.headers);
  const session =
    assumed === undefined || assumed === "invalid"
      ? flow.sessions.read(cookies)
      : ({ state: "valid", value: assumed, expires: Date.now() + ASSUMED_MS } as const);
  if (session?.state === "valid") {
    context.requestMetadata.jwt = session.value;
    trace?.report(decisions, { code: "session", expires: session.expires });
    return undefined;
  }
  // `cors` of this phase would have responded already, but `cors` of the route may do so: the decision is left to it.
  if (phase === "gateway" && isPreflight(request)) {
    trace?.report(decisions, { code: "preflight" });
    context.requestMetadata.unlessCors = new LoginError("authenticationRequired");
    return undefined;
  }
  if (incomplete) throw notFetched(context);
  const found = session?.state ?? "missing";
  if (!canLogIn(request)) {
    trace?.report(decisions, { code: "refused", session: found });
    throw new LoginError("authenticationRequired");
  }
  trace?.report(decisions, { code: "login", session: found });
  return flow.begin(request, cookies);
}

/** Logins need the provider's documents. Cookies stay, so sessions are valid again once the documents are available. */
function notFetched({ trace }: PolicyContext): GatewayError {
  return decisions.reject(trace, { code: "notFetched" }, "TG_DOCUMENT_MISSING");
}

/** Handles the callback. Errors of the login carry no token, so the trace may show their message. */
async function finish(context: PolicyContext, flow: LoginFlow, callback: URLSearchParams, cookies: Cookies) {
  const { trace } = context;
  try {
    const reply = await flow.finish(callback, cookies, context);
    trace?.report(decisions, { code: "loggedIn" });
    return reply;
  } catch (error) {
    if (error instanceof LoginError) trace?.report(decisions, { code: error.problem, why: error.cause?.message });
    throw error;
  }
}

/**
 * Removes the gateway's cookies from the request, so that no backend can replay a session, and keeps them for a second `oidc` policy:
 * one of the route after one of the gateway.
 */
function ownCookies({ request, requestMetadata }: PolicyContext): Cookies {
  const taken = takeCookies(request.headers);
  requestMetadata.oidcCookies ??= taken;
  return requestMetadata.oidcCookies;
}

/** A CORS preflight (Fetch, section 3.2.2). */
function isPreflight({ method, headers }: HttpRequest): boolean {
  return (
    method === "OPTIONS" &&
    getHeader(headers, "origin") !== undefined &&
    (getHeader(headers, "access-control-request-method") ?? "") !== ""
  );
}

/** Whether a redirect to a login page makes sense; else 401. gRPC clients do not follow redirects. */
function canLogIn({ method, headers }: HttpRequest): boolean {
  // A browser does not follow a login redirect of an OPTIONS request.
  if (method === "OPTIONS") return false;
  // Only browsers send it (Fetch Metadata, section 2.1); other clients are assumed to follow redirects.
  const destination = getHeader(headers, "sec-fetch-dest");
  if (destination !== undefined && !PAGES.has(destination)) return false;
  return !(getHeader(headers, "content-type") ?? "").startsWith("application/grpc");
}
