import { createHash } from "node:crypto";
import { seconds } from "../../base/dates.ts";
import type { Milliseconds } from "../../base/durations.ts";
import type { HttpRequest, LocalReply } from "../../http/message/message.ts";
import type { Fetch } from "../../upstream/callouts/fetch.ts";
import type { PolicyContext } from "../contract/types.ts";
import { observerOf } from "../shared/call-for.ts";
import type { Session } from "../shared-sessions/session.ts";
import { RETRY, type Renewal } from "../shared-sessions/shared-sessions.ts";
import { type Cookies, SealedCookies } from "./cookies.ts";
import { LoginError } from "./failure.ts";
import { Provider } from "./provider.ts";
import type { Oidc } from "./schema.ts";
import { Sessions } from "./session.ts";
import { tokenFetch } from "./token-call.ts";
import { type Transaction, Transactions } from "./transaction.ts";

/** Values of `error` that may go into a response: the characters of RFC 6749, section 4.1.2.1, and short. Anyone can make a callback. */
const SHOWN_ERROR = /^[\x20-\x21\x23-\x5b\x5d-\x7e]{1,100}$/;

/** The steps of a login with one provider: redirect to it, callback from it, redirect to where the user wanted to go. */
export class LoginFlow {
  readonly sessions: Sessions;
  readonly #transactions: Transactions;
  readonly #provider: Provider;
  readonly #fetch: Fetch;
  readonly #origin: string;
  /** Path of the callback. */
  readonly path: string;

  /** `key` seals the cookies: 32 bytes. `fetch` calls the token endpoint. */
  constructor(config: Oidc, key: Uint8Array, fetch: Fetch, provider = new Provider(config)) {
    const { origin, pathname, protocol } = new URL(config.redirectURI);
    this.#origin = origin;
    this.path = pathname;
    this.#provider = provider;
    this.#fetch = fetch;
    const trusted = fingerprint(config);
    const cookies = new SealedCookies(key, trusted, protocol === "https:");
    const id = trusted.slice(0, 16);
    this.sessions = new Sessions(cookies, id, {
      lifetime: secondsOf(config.session?.lifetime),
      idleTimeout: secondsOf(config.session?.idleTimeout),
      keepsAccessToken: config.accessTokenHeader !== undefined,
      keepsIdToken: keepsIdToken(config),
      client: [config.issuer, config.clientId],
    });
    this.#transactions = new Transactions(cookies, id);
  }

  /** Parameters of a callback from the provider (RFC 6749, section 4.1.2); undefined for any other request. */
  callbackOf({ method, path, search }: HttpRequest): URLSearchParams | undefined {
    if (path !== this.path || method !== "GET" || search === "") return undefined;
    const parameters = new URLSearchParams(search);
    return parameters.has("state") && (parameters.has("code") || parameters.has("error")) ? parameters : undefined;
  }

  /** Redirects the browser to the provider. */
  begin({ path, search }: HttpRequest, sent: Cookies): LocalReply {
    const { transaction, cookies } = this.#transactions.begin(sent, path + search);
    return redirect(this.#provider.authorizationUrl(transaction), cookies);
  }

  /** Completes the login and redirects the browser to where it wanted to go, with a session. Rejects with TG_OIDC. */
  async finish(callback: URLSearchParams, sent: Cookies, waiting: Waiting): Promise<LocalReply> {
    const { transaction, removal } = this.#transactions.find(sent, callback.get("state") ?? "");
    this.#provider.requireIssuer(callback);
    const error = callback.get("error");
    if (error !== null) throw providerError(error, removal);
    const gone = new AbortController();
    waiting.onClose(() => gone.abort());
    const call = tokenFetch(this.#fetch, observerOf(waiting, "oidc"), gone.signal);
    const session = this.sessions.begin(await this.#provider.redeem(callback, transaction, call));
    return redirect(this.#returnUrl(transaction), [...this.sessions.issue(session, sent), removal]);
  }

  /** Refreshes the tokens of a session. The call continues if the client leaves, because the provider may already have replaced the old token. */
  async renew(session: Session, waiting: Pick<Waiting, "trace" | "span">): Promise<Renewal> {
    try {
      const call = tokenFetch(this.#fetch, observerOf(waiting, "oidc"), new AbortController().signal);
      return { state: "renewed", session: this.sessions.renew(session, await this.#provider.refresh(session, call)) };
    } catch (error) {
      if (!(error instanceof LoginError)) throw error;
      const why = error.cause?.message ?? error.message;
      return error.problem === "refreshRefused"
        ? { state: "refused", why }
        : { state: "failed", why, retryAt: seconds() + RETRY };
    }
  }

  /** Absolute, on the origin of the redirect URI: a path `//evil.test` alone would be an open redirect. */
  #returnUrl({ returnTo }: Transaction): string {
    return this.#origin + returnTo;
  }
}

/** What completing a login needs of the request that waits for it. */
type Waiting = Pick<PolicyContext, "trace" | "span" | "onClose">;

function secondsOf(time: Milliseconds | undefined): number | undefined {
  return time === undefined ? undefined : Math.floor(time / 1000);
}

/** Whether a logout shows the provider the id token. */
function keepsIdToken({ logout, endSessionEndpoint }: Oidc): boolean {
  return logout !== undefined && endSessionEndpoint !== undefined;
}

/** Changes with what sessions contain, so that none is read in another form. */
const FORM = 2;

/** Identifies provider and client. Policies with the same fingerprint share sessions; others cannot read them. */
function fingerprint(config: Oidc): string {
  const { issuer, authorizationEndpoint, tokenEndpoint, clientId, redirectURI, scopes } = config;
  const kept = [config.accessTokenHeader !== undefined, keepsIdToken(config)];
  const client = [issuer, authorizationEndpoint, tokenEndpoint, clientId, redirectURI, scopes];
  const trusted = JSON.stringify([FORM, ...client, ...kept]);
  return createHash("sha256").update(trusted).digest("hex");
}

/** The provider reports an error, such as `access_denied`. */
function providerError(error: string, removal: string): Error {
  if (!SHOWN_ERROR.test(error))
    return new LoginError("invalidCallback", new Error("its error is malformed"), [removal]);
  return new LoginError("providerError", new Error(error), [removal]);
}

/** 302 to an absolute URL. */
export function redirect(location: string, cookies: readonly string[]): LocalReply {
  const fields = cookies.flatMap((cookie) => ["set-cookie", cookie]);
  return { status: 302, headers: ["location", location, "cache-control", "no-store", ...fields], body: "" };
}
