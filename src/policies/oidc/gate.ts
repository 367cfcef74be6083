import { setHeader } from "../../http/message/message.ts";
import { latin1 } from "../../http/message/syntax.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import type { Admission, PolicyContext, PolicyTrace } from "../contract/types.ts";
import type { Session } from "../shared-sessions/session.ts";
import type { Renewal, SharedSessions } from "../shared-sessions/shared-sessions.ts";
import type { Cookies } from "./cookies.ts";
import type { OidcCounts } from "./counts.ts";
import { decisions, type Unusable } from "./decisions.ts";
import { LoginError } from "./failure.ts";
import type { LoginFlow } from "./flow.ts";

/** The request may not pass by its session, because of this. */
export class NoSession {
  readonly reason: Unusable;

  constructor(reason: Unusable) {
    this.reason = reason;
  }
}

type Checked = Admission | NoSession;

/** Tells requests with a session from those without. */
export class Gate {
  readonly #flow: LoginFlow;
  readonly #shared: SharedSessions | undefined;
  readonly #tokenHeader: string | undefined;
  readonly #assumed: PolicyDeps["assumedCredential"];
  readonly #counts: OidcCounts;

  /**
   * `shared`: undefined in rehearsals, which refresh nothing. `tokenHeader`: the header for the access token, lower-case; undefined =
   * backends do not get it.
   */
  constructor(
    flow: LoginFlow,
    shared: SharedSessions | undefined,
    tokenHeader: string | undefined,
    assumed: PolicyDeps["assumedCredential"],
    counts: OidcCounts,
  ) {
    this.#flow = flow;
    this.#shared = shared;
    this.#tokenHeader = tokenHeader;
    this.#assumed = assumed;
    this.#counts = counts;
  }

  /** Identifies the user by the session, whose tokens may be refreshed for that. */
  check(context: PolicyContext, cookies: Cookies, trace: PolicyTrace | undefined): Checked | Promise<Checked> {
    const assumed = this.#assumed?.("oidc", undefined, context.request.headers);
    if (assumed !== undefined && assumed !== "invalid") {
      trace?.report(decisions, { code: "assumed" });
      return ({ requestMetadata }) => {
        requestMetadata.jwt = assumed;
      };
    }
    const found = this.#flow.sessions.read(cookies);
    if (found === undefined) return new NoSession("missing");
    if (found.state !== "valid") return new NoSession(found.state);
    const { session } = found;
    if (this.#shared === undefined) return this.#rehearse(cookies, session, trace);
    if (this.#shared.isRevoked(found.keys, session.began)) return new NoSession("revoked");
    return this.#continue(context, cookies, session, this.#shared, trace);
  }

  /** An explanation asks no provider, and does not know who has logged out. */
  #rehearse(cookies: Cookies, session: Session, trace: PolicyTrace | undefined): Checked {
    const { sessions } = this.#flow;
    if (session.refresh === undefined && sessions.lapsed(session)) return new NoSession("lapsed");
    trace?.report(decisions, { code: "rehearsed", expires: sessions.ends(session) });
    return this.#giving(cookies, session, false);
  }

  /** Continues a session, whose tokens may have to be refreshed first. */
  #continue(
    context: PolicyContext,
    cookies: Cookies,
    sent: Session,
    shared: SharedSessions,
    trace: PolicyTrace | undefined,
  ): Checked | Promise<Checked> {
    const { sessions } = this.#flow;
    let session = sent;
    for (;;) {
      const lapsed = sessions.lapsed(session);
      if (!lapsed && !sessions.due(session)) {
        // Also of a client that still has the old cookie: its response was lost, or is still under way.
        return this.#admit(cookies, session, session !== sent, trace);
      }
      const renewal = shared.renewal(session.generation);
      if (renewal?.state === "renewed") {
        session = renewal.session;
        continue;
      }
      if (renewal !== undefined) return this.#without(cookies, session, renewal, trace);
      if (session.refresh === undefined) return new NoSession("lapsed");
      // The tokens are still valid; the request that refreshes them will return the new ones.
      if (!lapsed && shared.refreshing(session.generation))
        return this.#admit(cookies, session, session !== sent, trace);
      return this.#renew(context, cookies, session, shared, trace);
    }
  }

  async #renew(
    context: PolicyContext,
    cookies: Cookies,
    session: Session,
    shared: SharedSessions,
    trace: PolicyTrace | undefined,
  ): Promise<Checked> {
    const renewal = await shared.once(session.generation, () => this.#refresh(session, context));
    // A logout may have come meanwhile; the provider then refuses the refresh, too.
    const { sessions } = this.#flow;
    if (shared.isRevoked(sessions.keys(renewal.state === "renewed" ? renewal.session : session), session.began))
      return new NoSession("revoked");
    if (renewal.state !== "renewed") return this.#without(cookies, session, renewal, trace);
    return this.#admit(cookies, renewal.session, true, trace);
  }

  async #refresh(session: Session, context: PolicyContext): Promise<Renewal> {
    const renewal = await this.#flow.renew(session, context);
    this.#counts.refresh(renewal.state);
    return renewal;
  }

  /** The tokens could not be refreshed. They may still be valid: another replica may have refreshed them already. */
  #without(
    cookies: Cookies,
    session: Session,
    renewal: Exclude<Renewal, { state: "renewed" }>,
    trace: PolicyTrace | undefined,
  ): Checked {
    const { why } = renewal;
    if (!this.#flow.sessions.lapsed(session)) {
      trace?.report(decisions, { code: "kept", expires: session.expires, why });
      return this.#giving(cookies, session, false);
    }
    if (renewal.state === "refused") return new NoSession("ended");
    trace?.report(decisions, { code: "notRenewed", why });
    throw new LoginError("unreachable", new Error(why));
  }

  /** `renewed`: the client does not have this session yet. */
  #admit(cookies: Cookies, session: Session, renewed: boolean, trace: PolicyTrace | undefined): Admission {
    const expires = this.#flow.sessions.ends(session);
    trace?.report(decisions, { code: renewed ? "renewed" : "session", expires });
    return this.#giving(cookies, session, renewed);
  }

  /** What a session gives the request and the browser. */
  #giving(cookies: Cookies, session: Session, renewed: boolean): Admission {
    const { sessions } = this.#flow;
    const changes = renewed ? sessions.issue(session, cookies) : sessions.touch(session, cookies);
    return (context) => {
      context.requestMetadata.jwt = session.claims;
      if (this.#tokenHeader !== undefined && session.access !== undefined) {
        const scheme = this.#tokenHeader === "authorization" ? "Bearer " : "";
        setHeader(context.request.headers, this.#tokenHeader, latin1(scheme + session.access));
      }
      for (const value of changes) context.editResponse({ action: "add", name: "set-cookie", value: latin1(value) });
      // A shared cache must not keep what has a cookie of one user.
      if (changes.length > 0) context.editResponse({ action: "add", name: "cache-control", value: latin1("private") });
    };
  }
}
