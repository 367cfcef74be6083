import type { HttpRequest } from "../../http/message.ts";
import { definePolicy } from "../policy.ts";
import type { AuthorityChange } from "../shared/field-schemas.ts";
import { checkAuthority, compilePathChange, hostPart, withPort } from "../shared/url-change.ts";
import type { PolicyHooks } from "../types.ts";
import type { UrlRewrite } from "./schema.ts";

const KIND = "urlRewrite";

export const urlRewrite = definePolicy({
  kind: KIND,
  phases: ["route"],
  traceStage: "url rewrite",
  prepare,
  redact: (config) => config,
});

/**
 * Changes authority and path before the request goes upstream; the query is kept (reference 3.15). Throws at load for what
 * cannot stand in a request; at run time `path.prefix` rejects with TG_FILTER_FAILED unless the route matched by prefix.
 */
function prepare(config: UrlRewrite): () => PolicyHooks {
  const rewriteAuthority = compileAuthority(config.authority);
  const fixed = config.authority !== undefined && config.authority !== "auto";
  const change = compilePathChange(config.path);
  return () => ({
    onRequest(context) {
      const { request, trace } = context;
      const before = trace === undefined ? undefined : snapshot(request);
      // `OPTIONS *` asks about the server and has no path to rewrite (RFC 9110 9.3.7).
      if (request.path !== "*") {
        const { path, search } = change(context);
        request.path = path;
        request.search = search;
      }
      request.authority = rewriteAuthority(request);
      if (fixed) context.authorityMode = "fixed";
      trace?.applied("url_rewrite", config, before, snapshot(request));
      return undefined;
    },
  });
}

/**
 * `full` and `host` replace all of the authority: the client's port is one of the gateway and means nothing to the backend
 * (Gateway API HTTPURLRewriteFilter: `hostname` replaces the value of Host).
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
