/**
 * `oidc` (docs/policies/oidc.md): logs browsers in with an OpenID Connect provider, by the authorization code flow with PKCE,
 * state and nonce. In: the provider's endpoints and keys, resolved from its discovery document. Out: claims of the ID token as
 * `jwt`, a redirect to the provider, or an error of the login. Runs in the gateway and route phases.
 *
 * The gateway keeps no sessions. State lives in cookies sealed with OIDC_COOKIE_SECRET, so every worker and replica can read it:
 * `flow.ts` has the steps, `transaction.ts` the login under way, `session.ts` the logged-in user, `logout.ts` both ways out,
 * `provider.ts` the protocol. `shared-sessions.ts` is what the workers of a process know together: refreshes and revocations.
 */

import { formatDuration } from "../../base/durations.ts";
import type { GatewayError } from "../../base/errors.ts";
import { REDACTED } from "../../base/redaction.ts";
import { getHeader, type HttpRequest, type LocalReply, removeHeader } from "../../http/message/message.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import { MissingCredential } from "../contract/missing-credential.ts";
import { PolicyError } from "../contract/policy-error.ts";
import { defined } from "../contract/resolver.ts";
import type {
  Admission,
  Authenticator,
  PolicyContext,
  PolicyTrace,
  RequestOutcome,
  Verified,
} from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import { isPreflight } from "../shared/preflight.ts";
import { COOKIE_SECRET } from "./cookie-key.ts";
import { type Cookies, takeCookies } from "./cookies.ts";
import { OidcCounts } from "./counts.ts";
import { decisions, type Unusable } from "./decisions.ts";
import { CHALLENGE, LoginError, type LoginProblem } from "./failure.ts";
import { LoginFlow } from "./flow.ts";
import { Gate, NoSession } from "./gate.ts";
import { Logout } from "./logout.ts";
import { Provider } from "./provider.ts";
import type { Oidc } from "./schema.ts";

const KIND = "oidc";
/** Parameters of the callback: a reader of a log could complete the login with them (RFC 9700, sections 4.2 and 4.5). */
const SECRET_PARAMETERS = ["code", "state"];
/** `Sec-Fetch-Dest` of requests that can show a login page; an image or a script's request would follow the redirect in vain. */
const PAGES = new Set(["document", "frame", "iframe", "fencedframe", "embed", "object"]);

export const oidc = definePolicy({
  decisions,
  kind: KIND,
  phases: ["gateway", "route"],
  prepare(config: Oidc) {
    const bind = prepareOidc(config);
    return (deps) => {
      const policy = bind(deps);
      return { onRequest: (context) => policy.onRequest(context) };
    };
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

/** Reads the provider's keys. What it returns throws a PolicyError without a key for the cookies, which comes from the environment. */
export function prepareOidc(config: Oidc): (deps: PolicyDeps) => OidcAuthenticator {
  const provider = new Provider(config);
  return (deps) => new OidcAuthenticator(config, provider, deps);
}

/** The policy in a data plane, alone or as an alternative of `satisfy`. */
class OidcAuthenticator implements Authenticator {
  readonly #flow: LoginFlow;
  readonly #logout: Logout | undefined;
  readonly #gate: Gate;
  readonly #phase: PolicyDeps["phase"];
  /** Documents of the provider are missing. */
  readonly #incomplete: boolean;
  /** Lower-case. */
  readonly #tokenHeader: string | undefined;
  readonly #counts: OidcCounts;

  constructor(config: Oidc, provider: Provider, deps: PolicyDeps) {
    const { oidcCookieKey, oidcSessions, credentials, ownFields, phase, fetch, wantDocument, assumedCredential } = deps;
    this.#counts = new OidcCounts(deps.oidcCounters, config.issuer);
    if (oidcCookieKey === undefined)
      throw PolicyError.at(
        [KIND],
        `${COOKIE_SECRET} is required when oidc is configured; set this environment variable to 64 hexadecimal digits, such as openssl rand -hex 32 prints`,
      );
    const flow = new LoginFlow(config, oidcCookieKey, fetch, provider);
    credentials.addAt(flow.path, SECRET_PARAMETERS);
    const { jwksUrl } = config;
    const tokenHeader = config.accessTokenHeader?.toLowerCase();
    if (tokenHeader !== undefined) {
      credentials.watch({ header: { name: tokenHeader, prefix: "" } });
      ownFields.add(tokenHeader);
    }
    if (jwksUrl !== undefined) provider.onUnknownKey = () => wantDocument?.(jwksUrl);
    oidcSessions?.listen();
    this.#flow = flow;
    this.#logout = config.logout && new Logout(config, config.logout, flow, provider, oidcSessions, this.#counts);
    this.#gate = new Gate(flow, oidcSessions, tokenHeader, assumedCredential, this.#counts);
    this.#phase = phase;
    this.#incomplete = config.incomplete ?? false;
    this.#tokenHeader = tokenHeader;
  }

  /** The policy alone: requests with a session pass, and browsers without one are sent to the login. */
  onRequest(context: PolicyContext): RequestOutcome {
    const response = this.serve(context);
    if (response !== undefined) return response;
    this.discard(context);
    const checked = this.#gate.check(context, ownCookies(context), context.trace);
    const conclude = (each: Awaited<typeof checked>): undefined | LocalReply => {
      if (each instanceof NoSession) return this.#refuse(context, each.reason);
      each(context);
      return undefined;
    };
    return checked instanceof Promise ? checked.then(conclude) : conclude(checked);
  }

  /** Responds to callbacks and logouts. */
  serve(context: PolicyContext): RequestOutcome {
    const callback = this.#flow.callbackOf(context.request);
    if (callback !== undefined) {
      if (this.#incomplete) throw notFetched(context);
      return this.#finish(context, callback);
    }
    const logout = this.#logout;
    const step = logout?.stepOf(context.request);
    if (step === undefined || logout === undefined) return undefined;
    if (step === "backChannel") {
      if (this.#incomplete) throw notFetched(context);
      return logout.byProvider(context, decisions).catch((error: unknown) => {
        throw failed(context, error, (problem) => this.#counts.logout("provider", problem));
      });
    }
    try {
      return logout.byUser(context, ownCookies(context), decisions);
    } catch (error) {
      throw failed(context, error, (problem) => this.#counts.logout("user", problem));
    }
  }

  verify(context: PolicyContext, trace: PolicyTrace | undefined): Verified {
    const checked = this.#gate.check(context, ownCookies(context), trace);
    const conclude = (each: Awaited<typeof checked>): Admission | MissingCredential => {
      if (!(each instanceof NoSession)) return each;
      const decision = { code: "noSession", session: each.reason } as const;
      return new MissingCredential(() => decisions.reject(trace, decision, "TG_OIDC", CHALLENGE));
    };
    return checked instanceof Promise ? checked.then(conclude) : conclude(checked);
  }

  /** Removes the cookies, and what clients send in the field for the access token. */
  discard(context: PolicyContext): void {
    ownCookies(context);
    if (this.#tokenHeader !== undefined) removeHeader(context.request.headers, this.#tokenHeader);
  }

  /** Only for browsers: other clients may have another credential to send, so the response has to name those. */
  login(context: PolicyContext): LocalReply | undefined {
    const { request } = context;
    if (!canLogIn(request) || !isBrowser(request)) return undefined;
    if (this.#incomplete) throw notFetched(context);
    return this.#begin(context);
  }

  #begin(context: PolicyContext): LocalReply {
    this.#counts.login("begun");
    return this.#flow.begin(context.request, ownCookies(context));
  }

  async #finish(context: PolicyContext, callback: URLSearchParams): Promise<LocalReply> {
    try {
      const reply = await this.#flow.finish(callback, ownCookies(context), context);
      this.#counts.login("completed");
      context.trace?.report(decisions, { code: "loggedIn" });
      return reply;
    } catch (error) {
      throw failed(context, error, (problem) => this.#counts.login(problem));
    }
  }

  #refuse(context: PolicyContext, session: Unusable): undefined | LocalReply {
    const { request, trace } = context;
    // `cors` of this phase would have responded already, but `cors` of the route may do so: the decision is left to it.
    if (this.#phase === "gateway" && isPreflight(request)) {
      trace?.report(decisions, { code: "preflight" });
      context.requestMetadata.unlessCors = { policy: KIND, error: new LoginError("authenticationRequired") };
      return undefined;
    }
    if (this.#incomplete) throw notFetched(context);
    if (!canLogIn(request)) {
      trace?.report(decisions, { code: "refused", session });
      throw new LoginError("authenticationRequired");
    }
    trace?.report(decisions, { code: "login", session });
    return this.#begin(context);
  }
}

/** Logins need the provider's documents. Cookies stay, so sessions are valid again once the documents are available. */
function notFetched({ trace }: PolicyContext): GatewayError {
  return decisions.reject(trace, { code: "notFetched" }, "TG_DOCUMENT_MISSING");
}

/** The error of a login or logout. Such errors carry no token, so the trace may show their message. */
function failed({ trace }: PolicyContext, error: unknown, count: (problem: LoginProblem) => void): unknown {
  if (!(error instanceof LoginError)) return error;
  count(error.problem);
  trace?.report(decisions, { code: error.problem, why: error.cause?.message });
  return error;
}

/**
 * Removes the gateway's cookies from the request, so that no backend can replay a session, and keeps them for a second `oidc` policy:
 * one of the route after one of the gateway.
 */
function ownCookies({ request, requestMetadata }: PolicyContext): Cookies {
  requestMetadata.oidcCookies ??= takeCookies(request.headers);
  return requestMetadata.oidcCookies;
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

/** Whether a client that says nothing else of itself looks like a browser that opens a page. */
function isBrowser({ headers }: HttpRequest): boolean {
  return (
    getHeader(headers, "sec-fetch-dest") !== undefined || (getHeader(headers, "accept") ?? "").includes("text/html")
  );
}
