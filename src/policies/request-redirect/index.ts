/**
 * `requestRedirect`: responds with a redirect (docs/policies/request-redirect.md, Gateway API HTTPRequestRedirectFilter). In:
 * which parts of the URL change. Out: 301, 302, 303, 307 or 308 with an absolute `Location`; the query is kept.
 */
import type { HttpRequest } from "../../http/message/message.ts";
import { applied, Decisions } from "../contract/decisions.ts";
import { PolicyError } from "../contract/policy-error.ts";
import type { PolicyHooks } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import { checkAuthority, compilePathChange, hostPart, portPart, withPort } from "../shared/url-change.ts";
import type { RequestRedirect } from "./schema.ts";

const decisions = new Decisions<{ readonly code: "redirects"; readonly location: string; readonly status: number }>(
  "request_redirect",
  { redirects: ({ location, status }) => applied(`redirects to ${location} with ${status}`, { location, status }) },
);

export const requestRedirect = definePolicy({
  decisions,
  kind: "requestRedirect",
  phases: ["route", "backend"],
  calls: "warn",
  prepare,
  redact: (config) => config,
});

/**
 * Compiles the change of the URL. Throws a PolicyError for values that are not valid in a URL. At run time `path.prefix` rejects
 * with TG_FILTER_FAILED if the route did not match by prefix, because there is no prefix to replace.
 */
function prepare(config: RequestRedirect): () => PolicyHooks {
  const status = config.status ?? 302;
  const authorityOf = compileAuthority(config);
  const change = compilePathChange(config.path);
  return () => ({
    onRequest(context) {
      const { request, trace } = context;
      const scheme = config.scheme ?? request.scheme;
      const { path, search } = change(context);
      const location = `${scheme}://${authorityOf(request, scheme)}${path === "*" ? "/" : path}${search}`;
      trace?.report(decisions, { code: "redirects", location, status });
      return { status, headers: ["location", location], body: "" };
    },
  });
}

type AuthorityOf = (request: HttpRequest, scheme: "http" | "https") => string;

/**
 * The port is that of `authority.full` or `authority.port`, if configured. With a configured scheme it is that scheme's default:
 * the request's port belongs to the scheme that the request used. Otherwise it is the request's (Gateway API
 * HTTPRequestRedirectFilter). Default ports are omitted (RFC 9110, section 4.2.3), except as part of `full`.
 */
function compileAuthority({ authority: change, scheme: configured }: RequestRedirect): AuthorityOf {
  const portOf = (request: HttpRequest): number | undefined =>
    configured === undefined ? portPart(request.authority) : undefined;
  // No backend has been chosen yet, so `auto` can only mean the request's host.
  if (change === undefined || change === "auto" || change === "none")
    return (request, scheme) => withPort(hostPart(request.authority), portOf(request), scheme);
  if ("full" in change) {
    checkAuthority(["authority", "full"], change.full);
    return () => change.full;
  }
  if ("port" in change) {
    checkAuthority(["authority", "port"], `host:${change.port}`);
    return (request, scheme) => withPort(hostPart(request.authority), change.port, scheme);
  }
  checkAuthority(["authority", "host"], change.host);
  if (portPart(change.host) !== undefined)
    throw PolicyError.at(["authority", "host"], `${change.host} has a port; use authority.full for host:port`);
  return (request, scheme) => withPort(change.host, portOf(request), scheme);
}
