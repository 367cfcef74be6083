/**
 * `csrf` (docs/policies/csrf.md): stops cross-site request forgery, where a page of another site makes the browser of a logged-in
 * user send a request that changes state. In: further trusted origins. Out: nothing, or 403. Runs in the route phase.
 */
import { getHeader, type HeaderList, type HttpRequest } from "../../http/message/message.ts";
import { applied, Decisions, rejected, skipped, type Told } from "../contract/decisions.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import { PolicyError } from "../contract/policy-error.ts";
import type { PolicyHooks } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import { normalOrigin, parseOrigin } from "../shared/origin.ts";
import type { Csrf } from "./schema.ts";

const KIND = "csrf";
/** The fields that decide, and the condition in explanations of requests whose fields are not known. */
const DECIDING = ["sec-fetch-site", "origin"] as const;
const TRUSTED = "csrf trusts the origin";
/** Safe methods (RFC 9110, section 9.2.1); TRACE never gets here. */
const SAFE = new Set(["GET", "HEAD", "OPTIONS"]);

type CsrfDecision =
  | { readonly code: "safe"; readonly method: string }
  | { readonly code: "allowed" | "foreign"; readonly site: string | undefined; readonly origin: string | undefined }
  | { readonly code: "repeated"; readonly header: string }
  | { readonly code: "opaque" }
  | { readonly code: "assumed"; readonly trusted: boolean };

const denied = (text: string): Told => rejected(text, { allowed: false, reason: text });

const decisions = new Decisions<CsrfDecision>(KIND, {
  safe: ({ method }) => skipped(`${method} changes nothing`),
  allowed: ({ site, origin }) => applied(whyAllowed(site, origin), { allowed: true }),
  repeated: ({ header }) => denied(`the header ${header} is repeated`),
  assumed: ({ trusted }) =>
    trusted
      ? applied("it is assumed to come from no page, or from a trusted one: its origin is not known", { allowed: true })
      : denied("it is assumed to come from a page that is not trusted: its origin is not known"),
  opaque: () => denied("the origin is null, which every page can obtain"),
  foreign: ({ site, origin = "(absent)" }) =>
    denied(
      `the origin ${origin} is not in additionalOrigins, and ${site === undefined ? "not that of the request" : `sec-fetch-site is ${site}`}`,
    ),
});

export const csrf = definePolicy({
  decisions,
  kind: KIND,
  phases: ["route"],
  prepare,
  redact: (config) => config,
});

function whyAllowed(site: string | undefined, origin: string | undefined): string {
  if (site === "same-origin" || site === "none") return `sec-fetch-site is ${site}`;
  return origin === undefined
    ? "sec-fetch-site and origin are absent: not a browser"
    : `the origin ${origin} is trusted`;
}

/**
 * Decides by `Sec-Fetch-Site` (Fetch Metadata), which pages cannot forge, and for browsers without it by `Origin`. Clients that
 * send neither are not browsers: a page cannot make them send a request with a user's cookies. Throws PolicyError for an entry that
 * is not an origin.
 */
function prepare(config: Csrf): (deps: PolicyDeps) => PolicyHooks {
  const trusted = new Set<string>();
  for (const origin of config.additionalOrigins) {
    const parsed = parseOrigin(origin);
    if (parsed === undefined || parsed.host.includes("*"))
      throw PolicyError.at(
        ["additionalOrigins"],
        `${JSON.stringify(origin)} is not an origin; write scheme://host[:port]`,
      );
    trusted.add(normalOrigin(origin));
  }
  return ({ assumedFields }) => ({
    onRequest(context) {
      const { request, trace } = context;
      if (SAFE.has(request.method)) {
        trace?.report(decisions, { code: "safe", method: request.method });
        return undefined;
      }
      const assumed = assumedFields?.(DECIDING, TRUSTED, request.headers);
      const decision =
        assumed === undefined ? decide(request, trusted) : ({ code: "assumed", trusted: assumed } as const);
      if (decision.code !== "allowed" && assumed !== true) throw decisions.reject(trace, decision, "TG_CSRF");
      trace?.report(decisions, decision);
      return undefined;
    },
  });
}

function decide({ headers, scheme, authority }: HttpRequest, trusted: ReadonlySet<string>): CsrfDecision {
  // Browsers send one. Of two, the backend might read the one that was not checked.
  const repeated = DECIDING.find((name) => isRepeated(headers, name));
  if (repeated !== undefined) return { code: "repeated", header: repeated };
  const site = getHeader(headers, "sec-fetch-site");
  const origin = getHeader(headers, "origin");
  const allowed = { code: "allowed", site, origin } as const;
  if (site === "same-origin" || site === "none") return allowed;
  // Sandboxed frames and cross-site redirects have it, so every attacker can obtain it.
  if (origin === "null") return { code: "opaque" };
  // Compared with the default port left out, so `https://a.test:443` is `https://a.test`.
  const normal = origin === undefined ? undefined : normalOrigin(origin);
  if (normal !== undefined && trusted.has(normal)) return allowed;
  const own = normal === undefined || normal === normalOrigin(`${scheme}://${authority}`);
  return site === undefined && own ? allowed : { code: "foreign", site, origin };
}

function isRepeated(headers: HeaderList, name: string): boolean {
  const first = headers.indexOf(name);
  return first >= 0 && headers.some((field, i) => i > first && i % 2 === 0 && field === name);
}
