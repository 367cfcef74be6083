import { seconds } from "../../base/dates.ts";
import { getHeader, type HttpRequest, type LocalReply } from "../../http/message/message.ts";
import { applied, type Decisions, type Texts } from "../contract/decisions.ts";
import type { PolicyContext } from "../contract/types.ts";
import { revocationKey, type SharedSessions } from "../shared-sessions/shared-sessions.ts";
import type { Cookies } from "./cookies.ts";
import type { OidcCounts } from "./counts.ts";
import { LoginError } from "./failure.ts";
import { type LoginFlow, redirect } from "./flow.ts";
import { LOGOUT_TOKEN_AGE, type Provider } from "./provider.ts";
import type { Oidc } from "./schema.ts";

/** Bytes of a request with a logout token. */
const MAX_BODY = 64 * 1024;
/** Seconds that a clock of the provider may differ; revocations last longer by this. */
const SKEW = 60;

export type LogoutDecision =
  | { readonly code: "loggedOut"; readonly had: boolean; readonly atProvider: boolean }
  | { readonly code: "askLogout" }
  | { readonly code: "providerLogout"; readonly ended: "session" | "user" | "known" };

export const LOGOUT_TEXTS: Texts<LogoutDecision> = {
  loggedOut: ({ had, atProvider }) =>
    applied(
      `${had ? "ends the session" : "there is no session to end"}${atProvider ? ": redirects to the logout of the provider" : ""}`,
      { action: "logout", session: had ? "ended" : "missing" },
    ),
  askLogout: () =>
    applied("asks the user: the link to the logout may be another site's", { action: "logout", session: "asked" }),
  providerLogout: ({ ended }) =>
    applied(
      {
        session: "the provider ends one session",
        user: "the provider ends all sessions of a user",
        known: "the logout token was used before",
      }[ended],
      { action: "backChannelLogout", ended },
    ),
};

/** The ways out of a session: by the user (RP-Initiated Logout 1.0) and by the provider (Back-Channel Logout 1.0). */
export class Logout {
  readonly #settings: NonNullable<Oidc["logout"]>;
  readonly #client: readonly [string, string];
  readonly #origin: string;
  readonly #flow: LoginFlow;
  readonly #provider: Provider;
  readonly #shared: SharedSessions | undefined;
  readonly #counts: OidcCounts;

  /** `shared`: undefined in rehearsals, which revoke nothing. */
  constructor(
    { issuer, clientId, redirectURI }: Oidc,
    settings: NonNullable<Oidc["logout"]>,
    flow: LoginFlow,
    provider: Provider,
    shared: SharedSessions | undefined,
    counts: OidcCounts,
  ) {
    this.#settings = settings;
    this.#client = [issuer, clientId];
    this.#origin = new URL(redirectURI).origin;
    this.#flow = flow;
    this.#provider = provider;
    this.#shared = shared;
    this.#counts = counts;
  }

  /** What a request asks for; undefined: something else than a logout. */
  stepOf({ method, path }: HttpRequest): "logout" | "backChannel" | undefined {
    if (path === this.#settings.path && (method === "GET" || method === "POST")) return "logout";
    return path === this.#settings.backChannelPath && method === "POST" ? "backChannel" : undefined;
  }

  /**
   * Ends the session of the browser, here and at the provider. Other sites must not log users out: a form of theirs is rejected, and a
   * link of theirs shows a question first.
   */
  byUser({ request, trace }: PolicyContext, sent: Cookies, decisions: Decisions<LogoutDecision>): LocalReply {
    const from = this.#sourceOf(request);
    if (from === "foreign" && request.method === "POST") throw new LoginError("foreignLogout");
    if (from !== "own" && request.method === "GET") {
      trace?.report(decisions, { code: "askLogout" });
      return page(
        `<form method="post" action="${escapeAttribute(this.#settings.path)}"><button>Log out</button></form>`,
      );
    }
    const found = this.#flow.sessions.read(sent);
    const session = found?.state === "valid" ? found.session : undefined;
    if (session !== undefined) {
      const now = seconds();
      // A refresh under way would bring the cookie back; a copy of the cookie must not be of use either.
      this.#revoke(revocationKey(...this.#client, "id", session.id), now);
    }
    const cookies = this.#flow.sessions.remove(sent);
    const next = this.#provider.logoutUrl(session?.hint, this.#settings.redirectURI);
    this.#counts.logout("user", session === undefined ? "missing" : "ended");
    trace?.report(decisions, { code: "loggedOut", had: session !== undefined, atProvider: next !== undefined });
    const location = next ?? this.#settings.redirectURI;
    return location === undefined ? page("<p>You are logged out.</p>", cookies) : redirect(location, cookies);
  }

  /** Ends sessions because the provider says so. The request carries no cookie: a signed token proves who sends it. */
  async byProvider(context: PolicyContext, decisions: Decisions<LogoutDecision>): Promise<LocalReply> {
    const token = await this.#provider.verifyLogoutToken(await tokenOf(context));
    const now = seconds();
    const seen = revocationKey(...this.#client, "jti", token.jti);
    // A token that was used is recorded like a revocation, under a key that no session has.
    const known = this.#shared?.isRevoked([seen], 0, now) === true;
    if (!known) {
      const { sid, sub = "" } = token;
      // Without a `sid` in its id token, a session cannot be told from the others of its user.
      const keys =
        sid === undefined
          ? [["sub", sub]]
          : [
              ["sid", sid],
              ["no sid", sub],
            ];
      for (const key of keys) this.#revoke(revocationKey(...this.#client, ...key), now);
      this.#shared?.revoke(seen, now, now + LOGOUT_TOKEN_AGE + SKEW);
    }
    const ended = known ? "known" : token.sid === undefined ? "user" : "session";
    this.#counts.logout("provider", known ? "repeated" : "ended");
    context.trace?.report(decisions, { code: "providerLogout", ended });
    return { status: 200, headers: ["cache-control", "no-store"], body: "" };
  }

  #revoke(key: bigint, now: number): void {
    if (this.#shared === undefined) return;
    if (!this.#shared.revoke(key, now, now + this.#flow.sessions.longest + SKEW))
      throw new LoginError("revocationsFull");
  }

  /**
   * Who sent the browser here. Browsers say so over TLS (Fetch Metadata, section 2.4); else Origin or Referer do. `unknown`: the
   * request has none of them, as with a typed address without TLS or a client that is no browser.
   */
  #sourceOf({ headers }: HttpRequest): "own" | "foreign" | "unknown" {
    const site = getHeader(headers, "sec-fetch-site");
    if (site !== undefined) return site === "same-origin" || site === "none" ? "own" : "foreign";
    const source = getHeader(headers, "origin") ?? getHeader(headers, "referer");
    if (source === undefined) return "unknown";
    return URL.canParse(source) && new URL(source).origin === this.#origin ? "own" : "foreign";
  }
}

/** The parameter `logout_token` of a form (Back-Channel Logout 1.0, section 2.5). */
async function tokenOf({ request, requestBody }: PolicyContext): Promise<string> {
  const type = getHeader(request.headers, "content-type") ?? "";
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type))
    throw new LoginError("invalidLogoutToken", new Error("the request has no form"));
  const body = await requestBody.buffer(MAX_BODY);
  if (body === undefined) throw new LoginError("invalidLogoutToken", new Error("the form is too long"));
  const tokens = new URLSearchParams(Buffer.from(body).toString("latin1")).getAll("logout_token");
  const [token] = tokens;
  if (token === undefined || tokens.length > 1)
    throw new LoginError("invalidLogoutToken", new Error("the form has no logout_token, or several"));
  return token;
}

/** A page of the gateway. It cannot be framed: a click on a hidden button would log the user out. */
function page(content: string, cookies: readonly string[] = []): LocalReply {
  const fields = cookies.flatMap((cookie) => ["set-cookie", cookie]);
  return {
    status: 200,
    headers: [
      "content-type",
      "text/html; charset=utf-8",
      "cache-control",
      "no-store",
      "content-security-policy",
      "default-src 'none'; form-action 'self' https: http:; frame-ancestors 'none'",
      ...fields,
    ],
    body: `<!doctype html><title>Log out</title>${content}\n`,
  };
}

function escapeAttribute(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
}
