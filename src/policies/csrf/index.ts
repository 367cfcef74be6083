import { GatewayError } from "../../base/errors.ts";
import { getHeader, type HeaderList } from "../../http/message.ts";
import { definePolicy } from "../policy.ts";
import { PolicyError } from "../policy-error.ts";
import { normalOrigin, parseOrigin } from "../shared/origin.ts";
import type { PolicyContext, PolicyHooks } from "../types.ts";
import type { Csrf } from "./schema.ts";

const KIND = "csrf";
/** Methods that change nothing (RFC 9110 9.2.1). */
const SAFE = new Set(["GET", "HEAD", "OPTIONS"]);

export const csrf = definePolicy({
  kind: KIND,
  phases: ["route"],
  traceStage: "csrf",
  prepare,
  redact: (config) => config,
});

/**
 * Refuses requests that a page of another site made a browser send (reference 3.11): browsers tell by `Sec-Fetch-Site`, older
 * ones by `Origin`, of which `null` is no page of this site. Clients that send neither are no browsers and pass. Throws for
 * what is no origin.
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
      const why = refusal(context, trusted);
      const allowed = why === undefined;
      trace?.decided(KIND, allowed, { allowed, ...(!allowed && { reason: why }) });
      if (!allowed) throw new GatewayError("TG_CSRF", undefined, new Error(why));
      return undefined;
    },
  });
}

/** Why a request is refused; undefined when it may pass. */
function refusal({ request }: PolicyContext, trusted: ReadonlySet<string>): string | undefined {
  // Browsers send one, and a backend may read either of two.
  const repeated = ["sec-fetch-site", "origin"].find((name) => isRepeated(request.headers, name));
  if (repeated !== undefined) return `${repeated} is repeated`;
  const site = getHeader(request.headers, "sec-fetch-site");
  const origin = getHeader(request.headers, "origin");
  if (site === "same-origin" || site === "none") return undefined;
  // Sandboxed frames and redirects from other sites have it, and so could every page that wants to.
  if (origin === "null") return "the origin is opaque";
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
