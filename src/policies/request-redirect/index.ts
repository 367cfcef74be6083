import type { HttpRequest } from "../../http/message.ts";
import { definePolicy } from "../policy.ts";
import { PolicyError } from "../policy-error.ts";
import { checkAuthority, compilePathChange, hostPart, portPart, withPort } from "../shared/url-change.ts";
import type { PolicyHooks } from "../types.ts";
import type { RequestRedirect } from "./schema.ts";

export const requestRedirect = definePolicy({
  kind: "requestRedirect",
  phases: ["route", "backend"],
  traceStage: "request redirect",
  calls: "warn",
  prepare,
  redact: (config) => config,
});

/**
 * Answers with an absolute `Location`; the query is kept, status 302 unless configured (reference 3.14). Throws at load for
 * what cannot stand in a URL; at run time `path.prefix` rejects with TG_FILTER_FAILED unless the route matched by prefix.
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
      trace?.applied("request_redirect", { location, status });
      return { status, headers: ["location", location], body: "" };
    },
  });
}

type AuthorityOf = (request: HttpRequest, scheme: "http" | "https") => string;

/**
 * The port: that of `authority.full` or `authority.port` when there is one; with a configured scheme that scheme's default,
 * because the request's port belongs to the scheme that it came by; else the request's (Gateway API
 * HTTPRequestRedirectFilter). Default ports are left out, except where `full` spells one.
 */
function compileAuthority({ authority: change, scheme: configured }: RequestRedirect): AuthorityOf {
  const portOf = (request: HttpRequest): number | undefined =>
    configured === undefined ? portPart(request.authority) : undefined;
  // No backend has been chosen yet, so `auto` has no other host to offer than the request's.
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
