import { GatewayError } from "../../base/errors.ts";
import { getHeader, type HttpRequest } from "../../http/message.ts";
import type { Phase } from "../../trace/events.ts";
import { REDACTED } from "../../trace/redaction.ts";
import type { PolicyDeps } from "../deps.ts";
import { definePolicy } from "../policy.ts";
import { PolicyError } from "../policy-error.ts";
import type { PolicyContext, PolicyHooks, RequestOutcome } from "../types.ts";
import { COOKIE_SECRET } from "./cookie-key.ts";
import { type Cookies, takeCookies } from "./cookies.ts";
import { oidcFailure } from "./failure.ts";
import { LoginFlow } from "./flow.ts";
import { Provider } from "./provider.ts";
import type { Oidc } from "./schema.ts";

const KIND = "oidc";
/** Of the callback: whoever has them can try to end the login in the place of the browser (RFC 9700 4.2, 4.5). */
const SECRET_PARAMETERS = ["code", "state"];
/** Where browsers can show a login page; everything else, such as images and what scripts ask for, is followed in vain. */
const PAGES = new Set(["document", "frame", "iframe", "fencedframe", "embed", "object"]);

export const oidc = definePolicy({
  kind: KIND,
  phases: ["gateway", "route"],
  traceStage: "oidc",
  prepare(config: Oidc) {
    const provider = new Provider(config);
    return (deps) => hooksOf(config, provider, deps);
  },
  redact: (config) => ({ ...config, clientSecret: REDACTED }),
});

/**
 * Lets only those pass who have logged in with an OpenID Connect provider, and sends browsers there (reference 3.5): the
 * authorization code flow with PKCE, state and nonce. Claims of the id token become `jwt`. Throws without a key for the
 * cookies, which comes from the environment.
 */
function hooksOf(config: Oidc, provider: Provider, { oidcCookieKey, credentials, phase }: PolicyDeps): PolicyHooks {
  if (oidcCookieKey === undefined)
    throw PolicyError.at(
      [KIND],
      `${COOKIE_SECRET} is required when oidc is configured; set this environment variable to 64 hexadecimal digits, such as openssl rand -hex 32 prints`,
    );
  const flow = new LoginFlow(config, oidcCookieKey, provider);
  credentials.addAt(flow.path, SECRET_PARAMETERS);
  return {
    onRequest(context) {
      const cookies = ownCookies(context);
      const callback = flow.callbackOf(context.request);
      return callback === undefined ? check(context, flow, cookies, phase) : finish(context, flow, callback, cookies);
    },
  };
}

/** `phase`: that of the policy. Identifies the user by the session; redirects users without one to the provider. */
function check(context: PolicyContext, flow: LoginFlow, cookies: Cookies, phase: Phase): RequestOutcome {
  const { request, trace } = context;
  const session = flow.sessions.read(cookies);
  if (session?.state === "valid") {
    context.requestMetadata.jwt = session.value;
    trace?.applied(KIND, { action: "session", expires: new Date(session.expires * 1000).toISOString() });
    return undefined;
  }
  // The cors of this phase would have answered it; that of the route may yet.
  if (phase === "gateway" && isPreflight(request)) {
    trace?.skipped(KIND, "a CORS preflight carries no cookies");
    context.requestMetadata.unlessCors = oidcFailure(401, "authentication required");
    return undefined;
  }
  const found = session?.state ?? "missing";
  if (!canLogIn(request)) {
    trace?.decided(KIND, false, { action: "refuse", session: found });
    throw oidcFailure(401, "authentication required");
  }
  trace?.applied(KIND, { action: "login", session: found });
  return flow.begin(request, cookies);
}

async function finish(context: PolicyContext, flow: LoginFlow, callback: URLSearchParams, cookies: Cookies) {
  const { trace } = context;
  try {
    const reply = await flow.finish(callback, cookies, context);
    trace?.applied(KIND, { action: "callback", result: "logged in" });
    return reply;
  } catch (error) {
    if (error instanceof GatewayError) trace?.decided(KIND, false, { action: "callback", result: error.message });
    throw error;
  }
}

/**
 * The cookies of the gateway's own: gone from the request, so that no backend can use them, and kept aside for a policy of
 * the route that follows one of the gateway.
 */
function ownCookies({ request, requestMetadata }: PolicyContext): Cookies {
  const taken = takeCookies(request.headers);
  requestMetadata.oidcCookies ??= taken;
  return requestMetadata.oidcCookies;
}

/** Fetch standard 3.2.2: asks what may be asked, before the real request. */
function isPreflight({ method, headers }: HttpRequest): boolean {
  return (
    method === "OPTIONS" &&
    getHeader(headers, "origin") !== undefined &&
    (getHeader(headers, "access-control-request-method") ?? "") !== ""
  );
}

function canLogIn({ method, headers }: HttpRequest): boolean {
  // A browser does not follow a login redirect of an OPTIONS request.
  if (method === "OPTIONS") return false;
  // Only browsers say it (Fetch Metadata 2.1); others are taken for somebody who can.
  const destination = getHeader(headers, "sec-fetch-dest");
  if (destination !== undefined && !PAGES.has(destination)) return false;
  return !(getHeader(headers, "content-type") ?? "").startsWith("application/grpc");
}
