/**
 * `sessionPersistence`: keeps the requests of a client at one endpoint (Gateway API, GEP-1619). In: a cookie or header of the
 * request. Out: the endpoint that it names is preferred to what weights and balancers choose, and the response has a session for
 * the endpoint that responded, unless the client has it already. The gateway keeps no state: a sealed session contains all that it
 * needs.
 */
import { createHash } from "node:crypto";
import { withDurations } from "../../base/durations.ts";
import { getHeader, type HeaderList } from "../../http/message/message.ts";
import { latin1 } from "../../http/message/syntax.ts";
import { applied, Decisions, failed, skipped, unable } from "../contract/decisions.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import type { PolicyContext, PolicyHooks } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import { cookieOf } from "../shared/credentials/places.ts";
import type { SessionPersistence } from "./schema.ts";
import { Sessions } from "./session.ts";

const KIND = "session_persistence";
/** Characters of a path that may stand in an attribute of a cookie (RFC 6265 4.1.1). */
const COOKIE_PATH = /^\/[\x21-\x3a\x3c-\x7e]*$/;
/** Browsers accept cookies of such names only with the path `/` (RFC 6265bis 4.1.3.2). */
const HOST_PREFIX = /^__host-/i;

type SessionDecision =
  | { readonly code: "none" | "expired" | "invalid" }
  | { readonly code: "kept" | "endpointGone" | "issued" | "renewed"; readonly endpoint: string };

const decisions = new Decisions<SessionDecision>(KIND, {
  none: () => skipped("the request has no session"),
  expired: () => unable("the session has expired"),
  invalid: () => unable("the session is not one of this route"),
  kept: ({ endpoint }) => applied(`the session prefers the endpoint ${endpoint}`, { endpoint }),
  endpointGone: ({ endpoint }) =>
    failed(`the session's endpoint ${endpoint} is gone or takes no requests now; another is chosen`, {
      endpoint,
      reason: "the endpoint is gone or takes no requests now",
    }),
  issued: ({ endpoint }) => applied(`a new session for the endpoint ${endpoint}`, { issued: endpoint }),
  renewed: ({ endpoint }) => applied(`the session of the endpoint ${endpoint} is renewed`, { renewed: endpoint }),
});

export const sessionPersistence = definePolicy({
  decisions,
  kind: "sessionPersistence",
  phases: ["route"],
  prepare: (config: SessionPersistence) => (deps) => hooksOf(config, deps),
  redact: (config) => withDurations(config, "absoluteTimeout", "idleTimeout"),
});

function hooksOf(config: SessionPersistence, { sessionKey, identity }: PolicyDeps): PolicyHooks {
  if (sessionKey === undefined) throw new TypeError("sessions need a key");
  const sessions = new Sessions(sessionKey, identity, config);
  const carrier = carrierOf(config, identity);
  return {
    onRequest(context) {
      const { trace, request } = context;
      const text = carrier.read(request.headers);
      if (carrier.header !== undefined) trace?.hide("header", carrier.header);
      if (text === undefined) {
        trace?.report(decisions, { code: "none" });
        return undefined;
      }
      const session = sessions.read(text, seconds());
      if (typeof session === "string") {
        trace?.report(decisions, { code: session });
        return undefined;
      }
      const { endpoint } = session;
      if (context.preferEndpoint(endpoint)) {
        context.session = session;
        trace?.report(decisions, { code: "kept", endpoint });
      } else trace?.report(decisions, { code: "endpointGone", endpoint });
      return undefined;
    },
    upstreamOnly: true,
    onResponse(context, { headers }) {
      const { calledEndpoint: endpoint, session, trace } = context;
      if (endpoint === undefined) return;
      const kept = session?.endpoint === endpoint;
      if (kept && !sessions.renews) return;
      const now = seconds();
      const issued = kept ? session : { endpoint, since: now };
      carrier.write(headers, sessions.issue(issued, now), context, sessions.left(issued, now));
      trace?.report(decisions, { code: kept ? "renewed" : "issued", endpoint });
    },
  };
}

/** The place of a session in messages. */
interface Carrier {
  /** Name of the header, lower-case, where it is one. */
  readonly header?: string;
  read(headers: HeaderList): string | undefined;
  /** `left`: seconds of the session's life; Infinity = no limit. */
  write(headers: HeaderList, text: string, context: PolicyContext, left: number): void;
}

function carrierOf({ type, sessionName, cookieConfig }: SessionPersistence, identity: string): Carrier {
  if (type === "Header") {
    const header = sessionName?.toLowerCase() ?? "x-tracegate-session";
    return {
      header,
      read: (headers) => getHeader(headers, header),
      write: (headers, text) => headers.push(header, latin1(text)),
    };
  }
  // Routes must not share sessions (GEP-1619, edge cases): a cookie with the path of one route comes with requests to others below it.
  const name = sessionName ?? `tracegate_session_${createHash("sha256").update(identity).digest("hex").slice(0, 8)}`;
  const hasPath = !HOST_PREFIX.test(name);
  const permanent = cookieConfig?.lifetimeType === "Permanent";
  return {
    // The first of the name counts: browsers send those with longer paths first (RFC 6265 5.4).
    read: (headers) => cookieOf(headers, name),
    write(headers, text, { matchedPath, request }, left) {
      const path = hasPath && COOKIE_PATH.test(matchedPath) ? matchedPath : "/";
      const secure = request.scheme === "https" ? "; Secure" : "";
      const maxAge = permanent ? `; Max-Age=${left}` : "";
      headers.push("set-cookie", latin1(`${name}=${text}; Path=${path}; HttpOnly; SameSite=Strict${secure}${maxAge}`));
    },
  };
}

/** Now, in Unix seconds. */
function seconds(): number {
  return Math.floor(Date.now() / 1000);
}
