/**
 * `csrf` (docs/policies/csrf.md): stops cross-site request forgery, where a page of another site makes the browser of a logged-in
 * user send a request that changes state. In: further trusted origins. Out: nothing, or 403. Runs in the route phase.
 */
import { GatewayError } from "../../base/errors.ts";
import { getHeader, type HeaderList } from "../../http/message/message.ts";
import { PolicyError } from "../contract/policy-error.ts";
import type { PolicyContext, PolicyHooks } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import { normalOrigin, parseOrigin } from "../shared/origin.ts";
import type { Csrf } from "./schema.ts";

const KIND = "csrf";
/** Safe methods (RFC 9110, section 9.2.1); TRACE never gets here. */
const SAFE = new Set(["GET", "HEAD", "OPTIONS"]);

export const csrf = definePolicy({
  kind: KIND,
  phases: ["route"],
  traceStage: "csrf",
  prepare,
  redact: (config) => config,
});

/**
 * Decides by `Sec-Fetch-Site` (Fetch Metadata), which pages cannot forge, and for browsers without it by `Origin`. Clients that
 * send neither are not browsers: a page cannot make them send a request with a user's cookies. Throws PolicyError for an entry that
 * is not an origin.
 */
function prepare(config: Csrf): () => PolicyHooks {
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
  return () => ({
    onRequest(context) {
      const { request, trace } = context;
      if (SAFE.has(request.method)) {
        trace?.skipped(KIND, "the method changes nothing");
        return undefined;
      }
      const why = reasonToReject(context, trusted);
      const allowed = why === undefined;
      trace?.decided(KIND, allowed, { allowed, ...(!allowed && { reason: why }) });
      if (!allowed) throw new GatewayError("TG_CSRF", undefined, new Error(why));
      return undefined;
    },
  });
}

/** Why the request is rejected, for the trace and the log; undefined when it passes. */
function reasonToReject({ request }: PolicyContext, trusted: ReadonlySet<string>): string | undefined {
  // Browsers send one. Of two, the backend might read the one that was not checked.
  const repeated = ["sec-fetch-site", "origin"].find((name) => isRepeated(request.headers, name));
  if (repeated !== undefined) return `${repeated} is repeated`;
  const site = getHeader(request.headers, "sec-fetch-site");
  const origin = getHeader(request.headers, "origin");
  if (site === "same-origin" || site === "none") return undefined;
  // Sandboxed frames and cross-site redirects have it, so every attacker can obtain it.
  if (origin === "null") return "the origin is opaque";
  // Compared with the default port left out, so `https://a.test:443` is `https://a.test`.
  const normal = origin === undefined ? undefined : normalOrigin(origin);
  if (normal !== undefined && trusted.has(normal)) return undefined;
  if (site !== undefined) return `sec-fetch-site is ${site} and the origin ${origin ?? "absent"}`;
  if (normal === undefined || normal === normalOrigin(`${request.scheme}://${request.authority}`)) return undefined;
  return `the origin is ${origin}`;
}

function isRepeated(headers: HeaderList, name: string): boolean {
  const first = headers.indexOf(name);
  return first >= 0 && headers.some((field, i) => i > first && i % 2 === 0 && field === name);
}
