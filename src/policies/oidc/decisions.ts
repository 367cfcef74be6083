import { applied, Decisions, failed, rejected, skipped } from "../contract/decisions.ts";
import { type LoginProblem, PROBLEM_TEXTS } from "./failure.ts";
import { LOGOUT_TEXTS, type LogoutDecision } from "./logout.ts";
import type { FoundSession } from "./session.ts";

/** Why a request has no usable session. `lapsed`: its tokens have expired. `ended`: the provider refuses to refresh them. */
export type Unusable = Exclude<FoundSession["state"], "valid"> | "missing" | "revoked" | "lapsed" | "ended";
type OidcDecision =
  | { readonly code: "session" | "renewed" | "rehearsed"; readonly expires: number }
  | { readonly code: "kept"; readonly expires: number; readonly why: string }
  | { readonly code: "notRenewed"; readonly why: string }
  | { readonly code: "preflight" | "notFetched" | "loggedIn" | "assumed" }
  | { readonly code: "refused" | "login" | "noSession"; readonly session: Unusable }
  | LogoutDecision
  | { readonly code: LoginProblem; readonly why: string | undefined };

export const decisions = new Decisions<OidcDecision>("oidc", {
  session: ({ expires }) =>
    applied(`the session is valid until ${timeOf(expires)}`, { action: "session", expires: timeOf(expires) }),
  rehearsed: ({ expires }) =>
    applied(
      `the session is valid until ${timeOf(expires)}, unless it was logged out or its tokens cannot be refreshed, which an explanation does not test`,
      { action: "session", expires: timeOf(expires) },
    ),
  assumed: () => applied("the session is assumed to be valid", { action: "session" }),
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
  noSession: ({ session }) => rejected(SESSION_TEXTS[session], { action: "none", session }),
  login: ({ session }) =>
    applied(`${SESSION_TEXTS[session]}: redirects to the provider's login`, { action: "login", session }),
  loggedIn: () => applied("the login is complete: redirects to its start", { action: "callback", result: "logged in" }),
  ...LOGOUT_TEXTS,
  ...PROBLEM_TEXTS,
});

const SESSION_TEXTS: Readonly<Record<Unusable, string>> = {
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
