/**
 * `urlRewrite`: changes the authority and path that the backend sees (docs/policies/url-rewrite.md, Gateway API
 * HTTPURLRewriteFilter). In: the request and the prefix that the route matched. Out: the same request with another target; the
 * query is kept.
 */
import type { HttpRequest } from "../../http/message/message.ts";
import { detailsText } from "../../trace/details.ts";
import { applied, Decisions } from "../contract/decisions.ts";
import type { PolicyHooks } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import type { AuthorityChange } from "../schema/fields.ts";
import { checkAuthority, compilePathChange, hostPart, withPort } from "../shared/url-change.ts";
import type { UrlRewrite } from "./schema.ts";

const KIND = "urlRewrite";

const decisions = new Decisions<{ readonly code: "rewritten"; readonly change: UrlRewrite }>("url_rewrite", {
  rewritten: ({ change }) => applied(detailsText(change), change),
});

export const urlRewrite = definePolicy({
  decisions,
  kind: KIND,
  phases: ["route"],
  prepare,
  redact: (config) => config,
});

/**
 * Compiles the change. Throws a PolicyError for values that are not valid in a request target. At run time `path.prefix` rejects
 * with TG_FILTER_FAILED if the route did not match by prefix, because there is no prefix to replace.
 */
function prepare(config: UrlRewrite): () => PolicyHooks {
  const rewriteAuthority = compileAuthority(config.authority);
  const fixed = config.authority !== undefined && config.authority !== "auto";
  const change = compilePathChange(config.path);
  return () => ({
    onRequest(context) {
      const { request, trace } = context;
      const before = trace === undefined ? undefined : snapshot(request);
      // `OPTIONS *` is about the server and has no path to rewrite (RFC 9110, section 9.3.7).
      if (request.path !== "*") {
        const { path, search } = change(context);
        request.path = path;
        request.search = search;
      }
      request.authority = rewriteAuthority(request);
      // A configured authority must survive the choice of the backend, which otherwise sets the backend's host name.
      if (fixed) context.authorityMode = "fixed";
      trace?.report(decisions, { code: "rewritten", change: config }, before, snapshot(request));
      return undefined;
    },
  });
}

/**
 * `full` and `host` replace the whole authority: the client's port is the gateway's and means nothing to the backend (Gateway
 * API HTTPURLRewriteFilter: `hostname` replaces the value of Host).
 */
function compileAuthority(change: AuthorityChange | undefined): (request: HttpRequest) => string {
  if (change === undefined || change === "auto" || change === "none") return ({ authority }) => authority;
  if ("port" in change) {
    const { port } = change;
    checkAuthority(["authority", "port"], `host:${port}`);
    return ({ authority, scheme }) => withPort(hostPart(authority), port, scheme);
  }
  const authority = "full" in change ? change.full : change.host;
  checkAuthority(["authority", "full" in change ? "full" : "host"], authority);
  return () => authority;
}

function snapshot({ authority, path, search }: HttpRequest): { host: string; pathAndQuery: string } {
  return { host: authority, pathAndQuery: path + search };
}
