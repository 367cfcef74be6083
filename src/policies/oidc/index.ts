/**
 * `oidc` (docs/policies/oidc.md): logs browsers in with an OpenID Connect provider, by the authorization code flow with PKCE,
 * state and nonce. In: the provider's endpoints and keys, resolved from its discovery document. Out: claims of the ID token as
 * `jwt`, a redirect to the provider, or an error of the login. Runs in the gateway and route phases.
 *
 * The gateway keeps no sessions. State lives in cookies sealed with OIDC_COOKIE_SECRET, so every worker and replica can read it:
 * `flow.ts` has the steps, `transaction.ts` the login under way, `session.ts` the logged-in user, `logout.ts` both ways out,
 * `provider.ts` the protocol. `shared-sessions.ts` is what the workers of a process know together: refreshes and revocations.
 */

import { seconds } from "../../base/dates.ts";
import { formatDuration } from "../../base/durations.ts";
import type { GatewayError } from "../../base/errors.ts";
import { REDACTED } from "../../base/redaction.ts";
import { getHeader, type HttpRequest, removeHeader, setHeader } from "../../http/message/message.ts";
import { latin1 } from "../../http/message/syntax.ts";
import type { Phase } from "../../trace/events.ts";
import { applied, Decisions, failed, rejected, skipped } from "../contract/decisions.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import { PolicyError } from "../contract/policy-error.ts";
import { defined } from "../contract/resolver.ts";
import type { PolicyContext, PolicyHooks, RequestOutcome } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import type { Session } from "../shared-sessions/session.ts";
import type { Renewal, SharedSessions } from "../shared-sessions/shared-sessions.ts";
import { COOKIE_SECRET } from "./cookie-key.ts";
import { type Cookies, takeCookies } from "./cookies.ts";
import { LoginError, type LoginProblem, PROBLEM_TEXTS } from "./failure.ts";
import { LoginFlow } from "./flow.ts";
import { LOGOUT_TEXTS, Logout, type LogoutDecision } from "./logout.ts";
import { Provider } from "./provider.ts";
import type { Oidc } from "./schema.ts";
import type { FoundSession } from "./session.ts";

const KIND = "oidc";
/** Parameters of the callback: a reader of a log could complete the login with them (RFC 9700, sections 4.2 and 4.5). */
const SECRET_PARAMETERS = ["code", "state"];
/** `Sec-Fetch-Dest` of requests that can show a login page; an image or a script's request would follow the redirect in vain. */
const PAGES = new Set(["document", "frame", "iframe", "fencedframe", "embed", "object"]);

/** Why there is no usable session. `lapsed`: its tokens have expired. `ended`: the provider refuses to refresh them. */
type Found = Exclude<FoundSession["state"], "valid"> | "missing" | "revoked" | "lapsed" | "ended";
type OidcDecision =
  | { readonly code: "session" | "renewed" | "rehearsed"; readonly expires: number }
  | { readonly code: "kept"; readonly expires: number; readonly why: string }
  | { readonly code: "notRenewed"; readonly why: string }
  | { readonly code: "preflight" | "notFetched" | "loggedIn" }
  | { readonly code: "refused" | "login"; readonly session: Found }
  | LogoutDecision
  | { readonly code: LoginProblem; readonly why: string | undefined };

const decisions = new Decisions<OidcDecision>(KIND, {
  session: ({ expires }) =>
    applied(`the session is valid until ${timeOf(expires)}`, { action: "session", expires: timeOf(expires) }),
  rehearsed: ({ expires }) =>
    applied(
      `the session is valid until ${timeOf(expires)}, unless it was logged out or its tokens cannot be refreshed, which an explanation does not test`,
      { action: "session", expires: timeOf(expires) },
    ),
  renewed: ({ expires }) =>
    applied(`its tokens were refreshed; the session is valid until ${timeOf(expires)}`, {
      action: "refresh",
      expires: timeOf(expires),
    }),
  kept: ({ expires, why }) =>
    failed(`its tokens could not be refreshed: ${why}; the session is valid until they expire at ${timeOf(expires)}`, {
      action: "refresh",
      expires: timeOf(expires),
    }),
  notRenewed: ({ why }) =>
    rejected(`its tokens have expired and could not be refreshed: ${why}`, { action: "refresh", result: "failed" }),
  preflight: () => skipped("a CORS preflight carries no cookies"),
  notFetched: () => {
    const reason = "the provider's discovery document or key set has not been fetched yet";
    return rejected(reason, { action: "reject", reason });
  },
  refused: ({ session }) =>
    rejected(`${SESSION_TEXTS[session]}, and the request is not one that can show a login page`, {
      action: "reject",
      session,
    }),
  login: ({ session }) =>
    applied(`${SESSION_TEXTS[session]}: redirects to the provider's login`, { action: "login", session }),
  loggedIn: () => applied("the login is complete: redirects to its start", { action: "callback", result: "logged in" }),
  ...LOGOUT_TEXTS,
  ...PROBLEM_TEXTS,
});

const SESSION_TEXTS: Readonly<Record<Found, string>> = {
  missing: "the request has no session",
  expired: "the session is expired",
  invalid: "the session is invalid",
  idle: "the session was not used for too long",
  revoked: "the session was logged out",
  lapsed: "the tokens of the session have expired",
  ended: "the provider no longer accepts the session",
};

function timeOf(unix: number): string {
  return new Date(unix * 1000).toISOString();
}

export const oidc = definePolicy({
  decisions,
  kind: KIND,
  phases: ["gateway", "route"],
  prepare(config: Oidc) {
    const provider = new Provider(config);
    return (deps) => hooksOf(config, provider, deps);
  },
  redact: ({ jwksUrl: _url, session, ...config }) =>
    defined({
      ...config,
      clientSecret: REDACTED,
      session: session && {
        ...(session.lifetime !== undefined && { lifetime: formatDuration(session.lifetime) }),
        ...(session.idleTimeout !== undefined && { idleTimeout: formatDuration(session.idleTimeout) }),
      },
    }),
});

/** Binds the policy to a data plane. Throws PolicyError without a key for the cookies, which comes from the environment. */
function hooksOf(config: Oidc, provider: Provider, deps: PolicyDeps): PolicyHooks {
  const { oidcCookieKey, oidcSessions, credentials, ownFields, phase, fetch, wantDocument, assumedCredential } = deps;
  if (oidcCookieKey === undefined)
    throw PolicyError.at(
      [KIND],
      `${COOKIE_SECRET} is required when oidc is configured; set this environment variable to 64 hexadecimal digits, such as openssl rand -hex 32 prints`,
    );
  const flow = new LoginFlow(config, oidcCookieKey, fetch, provider);
  credentials.addAt(flow.path, SECRET_PARAMETERS);
  const { jwksUrl, incomplete = false } = config;
  const tokenHeader = config.accessTokenHeader?.toLowerCase();
  if (tokenHeader !== undefined) {
    credentials.watch({ header: { name: tokenHeader, prefix: "" } });
    ownFields.add(tokenHeader);
  }
  if (jwksUrl !== undefined) provider.onUnknownKey = () => wantDocument?.(jwksUrl);
  oidcSessions?.listen();
  const logout = config.logout && new Logout(config, config.logout, flow, provider, oidcSessions);
  const gate = new Gate(flow, oidcSessions, phase, incomplete, tokenHeader, assumedCredential);
  return {
    onRequest(context) {
      const cookies = ownCookies(context);
      const callback = flow.callbackOf(context.request);
      if (callback !== undefined) {
        if (incomplete) throw notFetched(context);
        return finish(context, flow, callback, cookies).catch((error: unknown) => fail(context, error));
      }
      const step = logout?.stepOf(context.request);
      if (step === undefined || logout === undefined) return gate.check(context, cookies);
      if (step === "backChannel") {
        if (incomplete) throw notFetched(context);
        return logout.byProvider(context, decisions).catch((error: unknown) => fail(context, error));
      }
      try {
        return logout.byUser(context, cookies, decisions);
      } catch (error) {
        return fail(context, error);
      }
    },
  };
}

/** Seconds that an assumed session is still valid. */
const ASSUMED = 3600;

/** Lets requests with a session pass, and sends others to the login. */
class Gate {
  readonly #flow: LoginFlow;
  readonly #shared: SharedSessions | undefined;
  readonly #phase: Phase;
  readonly #incomplete: boolean;
  /** Lower-case. */
  readonly #tokenHeader: string | undefined;
  readonly #assumed: PolicyDeps["assumedCredential"];

  /** `phase`: that of the policy. `shared`: undefined in rehearsals, which refresh nothing. */
  constructor(
    flow: LoginFlow,
    shared: SharedSessions | undefined,
    phase: Phase,
    incomplete: boolean,
    tokenHeader: string | undefined,
    assumed: PolicyDeps["assumedCredential"],
  ) {
    this.#flow = flow;
    this.#shared = shared;
    this.#phase = phase;
    this.#incomplete = incomplete;
    this.#tokenHeader = tokenHeader;
    this.#assumed = assumed;
  }

  /** Identifies the user by the session; redirects users without one to the provider. */
  check(context: PolicyContext, cookies: Cookies): RequestOutcome {
    if (this.#tokenHeader !== undefined) removeHeader(context.request.headers, this.#tokenHeader);
    const assumed = this.#assumed?.("oidc", undefined, context.request.headers);
    if (assumed !== undefined && assumed !== "invalid") {
      context.requestMetadata.jwt = assumed;
      context.trace?.report(decisions, { code: "session", expires: seconds() + ASSUMED });
      return undefined;
    }
    const found = this.#flow.sessions.read(cookies);
    if (found === undefined) return this.#refuse(context, cookies, "missing");
    if (found.state !== "valid") return this.#refuse(context, cookies, found.state);
    const { session } = found;
    if (this.#shared === undefined) return this.#rehearse(context, cookies, session);
    if (this.#shared.isRevoked(found.keys, session.began)) return this.#refuse(context, cookies, "revoked");
    return this.#continue(context, cookies, session, this.#shared);
  }

  /** An explanation asks no provider, and does not know who has logged out. */
  #rehearse(context: PolicyContext, cookies: Cookies, session: Session): RequestOutcome {
    const { sessions } = this.#flow;
    if (session.refresh === undefined && sessions.lapsed(session)) return this.#refuse(context, cookies, "lapsed");
    this.#give(context, cookies, session, false);
    context.trace?.report(decisions, { code: "rehearsed", expires: sessions.ends(session) });
    return undefined;
  }

  /** Continues a session, whose tokens may have to be refreshed first. */
  #continue(context: PolicyContext, cookies: Cookies, sent: Session, shared: SharedSessions): RequestOutcome {
    const { sessions } = this.#flow;
    let session = sent;
    for (;;) {
      const lapsed = sessions.lapsed(session);
      if (!lapsed && !sessions.due(session)) {
        // Also of a client that still has the old cookie: its response was lost, or is still under way.
        return this.#admit(context, cookies, session, session !== sent);
      }
      const renewal = shared.renewal(session.generation);
      if (renewal?.state === "renewed") {
        session = renewal.session;
        continue;
      }
      if (renewal !== undefined) return this.#without(context, cookies, session, renewal);
      if (session.refresh === undefined) return this.#refuse(context, cookies, "lapsed");
      // The tokens are still valid; the request that refreshes them will return the new ones.
      if (!lapsed && shared.refreshing(session.generation))
        return this.#admit(context, cookies, session, session !== sent);
      return this.#renew(context, cookies, session, shared);
    }
  }

  async #renew(context: PolicyContext, cookies: Cookies, session: Session, shared: SharedSessions) {
    const renewal = await shared.once(session.generation, () => this.#flow.renew(session, context));
    // A logout may have come meanwhile; the provider then refuses the refresh, too.
    const { sessions } = this.#flow;
    if (shared.isRevoked(sessions.keys(renewal.state === "renewed" ? renewal.session : session), session.began))
      return this.#refuse(context, cookies, "revoked");
    if (renewal.state !== "renewed") return this.#without(context, cookies, session, renewal);
    this.#admit(context, cookies, renewal.session, true);
    return undefined;
  }

  /** The tokens could not be refreshed. They may still be valid: another replica may have refreshed them already. */
  #without(
    context: PolicyContext,
    cookies: Cookies,
    session: Session,
    renewal: Exclude<Renewal, { state: "renewed" }>,
  ): RequestOutcome {
    const { trace } = context;
    const { why } = renewal;
    if (!this.#flow.sessions.lapsed(session)) {
      trace?.report(decisions, { code: "kept", expires: session.expires, why });
      this.#give(context, cookies, session, false);
      return undefined;
    }
    if (renewal.state === "refused") return this.#refuse(context, cookies, "ended");
    trace?.report(decisions, { code: "notRenewed", why });
    throw new LoginError("unreachable", new Error(why));
  }

  /** Returns undefined: the request continues. `renewed`: the client does not have this session yet. */
  #admit(context: PolicyContext, cookies: Cookies, session: Session, renewed = false): undefined {
    this.#give(context, cookies, session, renewed);
    const expires = this.#flow.sessions.ends(session);
    context.trace?.report(decisions, { code: renewed ? "renewed" : "session", expires });
  }

  #give(context: PolicyContext, cookies: Cookies, session: Session, renewed: boolean): void {
    const { sessions } = this.#flow;
    context.requestMetadata.jwt = session.claims;
    if (this.#tokenHeader !== undefined && session.access !== undefined) {
      const scheme = this.#tokenHeader === "authorization" ? "Bearer " : "";
      setHeader(context.request.headers, this.#tokenHeader, latin1(scheme + session.access));
    }
    const changes = renewed ? sessions.issue(session, cookies) : sessions.touch(session, cookies);
    for (const value of changes) context.editResponse({ action: "add", name: "set-cookie", value: latin1(value) });
    // A shared cache must not keep what has a cookie of one user.
    if (changes.length > 0) context.editResponse({ action: "add", name: "cache-control", value: latin1("private") });
  }

  #refuse(context: PolicyContext, cookies: Cookies, session: Found): RequestOutcome {
    const { request, trace } = context;
    // `cors` of this phase would have responded already, but `cors` of the route may do so: the decision is left to it.
    if (this.#phase === "gateway" && isPreflight(request)) {
      trace?.report(decisions, { code: "preflight" });
      context.requestMetadata.unlessCors = new LoginError("authenticationRequired");
      return undefined;
    }
    if (this.#incomplete) throw notFetched(context);
    if (!canLogIn(request)) {
      trace?.report(decisions, { code: "refused", session });
      throw new LoginError("authenticationRequired");
    }
    trace?.report(decisions, { code: "login", session });
    return this.#flow.begin(request, cookies);
  }
}

/** Logins need the provider's documents. Cookies stay, so sessions are valid again once the documents are available. */
function notFetched({ trace }: PolicyContext): GatewayError {
  return decisions.reject(trace, { code: "notFetched" }, "TG_DOCUMENT_MISSING");
}

/** Handles the callback. */
async function finish(context: PolicyContext, flow: LoginFlow, callback: URLSearchParams, cookies: Cookies) {
  const reply = await flow.finish(callback, cookies, context);
  context.trace?.report(decisions, { code: "loggedIn" });
  return reply;
}

/** Ends a login or logout that has failed. Its errors carry no token, so the trace may show their message. */
function fail({ trace }: PolicyContext, error: unknown): never {
  if (error instanceof LoginError) trace?.report(decisions, { code: error.problem, why: error.cause?.message });
  throw error;
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
