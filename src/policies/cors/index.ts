/**
 * `cors` (docs/policies/cors.md): cross-origin resource sharing as the Fetch standard defines it (section 3.2). In: allowed
 * origins, methods and headers. Out: 200 for every OPTIONS with an Origin, and response headers for all other requests, which the
 * browser enforces. It runs first in the gateway and route phases: preflights carry no credentials.
 */
import { withDurations } from "../../base/durations.ts";
import { getHeader, type HeaderList, type HttpRequest } from "../../http/message/message.ts";
import { isToken, latin1 } from "../../http/message/syntax.ts";
import { applied, Decisions, failed, rejected, unable } from "../contract/decisions.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import type { HeaderEdit } from "../contract/header-edits.ts";
import { PolicyError } from "../contract/policy-error.ts";
import type { PolicyHooks } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import { compileOrigins } from "./origins.ts";
import type { Cors } from "./schema.ts";

const KIND = "cors";
/**
 * Responses depend on the Origin. Responses to requests without one have to say so too, or a cache would serve them, without CORS
 * headers, to pages (Fetch, "CORS protocol and HTTP caches").
 */
const VARY: HeaderEdit = { action: "add", name: "vary", value: "Origin" };

const HAS_ORIGIN = '"origin" in request.headers';

type CorsDecision =
  | { readonly code: "noOrigin" | "assumed" }
  | { readonly code: "allowed" | "foreign"; readonly origin: string; readonly preflight: boolean };

const decisions = new Decisions<CorsDecision>(KIND, {
  noOrigin: () => unable("the request has no origin, so no page of another site made it"),
  assumed: () => applied("it is assumed to be a preflight: its origin is not known", { preflight: true }),
  allowed: ({ origin, preflight }) =>
    applied(`${preflight ? "preflight of" : "pages of"} ${origin}, which allowOrigins allows`, {
      origin,
      allowed: true,
      preflight,
    }),
  // Requests of other origins pass: CORS protects responses, in the browser; it is not access control on the server.
  foreign: ({ origin, preflight }) =>
    (preflight ? rejected : failed)(
      `allowOrigins does not allow ${origin}${preflight ? "" : ": its pages cannot read the response"}`,
      { origin, allowed: false, preflight },
    ),
});

export const cors = definePolicy({
  decisions,
  kind: KIND,
  phases: ["gateway", "route"],
  prepare,
  redact: (config) => withDurations(config, "maxAge"),
});

/**
 * Compiles origins and the headers that do not depend on the request. `Access-Control-Allow-Origin` echoes the origin instead of
 * `*`, which browsers reject for requests with credentials. Headers are set as edits of the response, so errors and responses of
 * other policies have them too. Throws PolicyError for an invalid origin, method or header name.
 */
function prepare(config: Cors): (deps: PolicyDeps) => PolicyHooks {
  const allows = compileOrigins(["allowOrigins"], config.allowOrigins);
  for (const field of ["allowMethods", "allowHeaders", "exposeHeaders"] as const)
    for (const name of config[field])
      if (!isToken(name)) throw PolicyError.at([field], `${JSON.stringify(name)} is not a valid name; remove it`);
  const preflight = compilePreflight(config);
  const fixed = fixedEdits(config);
  return ({ assumedFields }) => ({
    onRequest(context) {
      const { request, trace } = context;
      const origin = getHeader(request.headers, "origin");
      if (origin === undefined) {
        if (request.method === "OPTIONS" && assumedFields?.(["origin"], HAS_ORIGIN, request.headers) === true) {
          trace?.report(decisions, { code: "assumed" });
          return { status: 200, headers: ["vary", "Origin"], body: "" };
        }
        context.editResponse(VARY);
        trace?.report(decisions, { code: "noOrigin" });
        return undefined;
      }
      const allowed = allows(origin);
      const isPreflight = request.method === "OPTIONS";
      trace?.report(decisions, { code: allowed ? "allowed" : "foreign", origin, preflight: isPreflight });
      if (isPreflight) {
        const headers = allowed ? preflight(request, origin) : ["vary", "Origin"];
        return { status: 200, headers, body: "" };
      }
      context.editResponse(VARY);
      if (!allowed) return undefined;
      context.editResponse({ action: "set", name: "access-control-allow-origin", value: latin1(origin) });
      for (const edit of fixed) context.editResponse(edit);
      return undefined;
    },
  });
}

/** Permissions that are the same for every allowed origin. */
function fixedEdits({ allowCredentials, exposeHeaders }: Cors): readonly HeaderEdit[] {
  const edits: HeaderEdit[] = [];
  if (allowCredentials) edits.push({ action: "set", name: "access-control-allow-credentials", value: "true" });
  // In responses to requests with credentials, `*` is the name of a header, not a wildcard (Fetch 3.2.4).
  const value = !exposeHeaders.includes("*") ? exposeHeaders.join(",") : allowCredentials ? "" : "*";
  if (value !== "") edits.push({ action: "set", name: "access-control-expose-headers", value: latin1(value) });
  return edits;
}

/** The headers of the response to a preflight of an allowed origin. `Max-Age` is in seconds (Fetch 3.2.3). */
function compilePreflight(config: Cors): (request: HttpRequest, origin: string) => HeaderList {
  const fixed = fixedEdits(config).flatMap(({ name, value }) => [name, value]);
  if (config.maxAge !== undefined) fixed.push("access-control-max-age", String(Math.floor(config.maxAge / 1000)));
  const methods = compileList(config.allowMethods, "access-control-request-method", config.allowCredentials);
  const headers = compileList(config.allowHeaders, "access-control-request-headers", config.allowCredentials);
  return (request, origin) => {
    const list = ["access-control-allow-origin", origin, "vary", "Origin", ...fixed];
    const allowedMethods = methods(request);
    if (allowedMethods !== undefined) list.push("access-control-allow-methods", allowedMethods);
    const allowedHeaders = headers(request);
    if (allowedHeaders !== undefined) list.push("access-control-allow-headers", allowedHeaders);
    return list;
  };
}

/** The configured names, or for `*` an echo of what the preflight requests, since `*` does not work with credentials. */
function compileList(
  names: readonly string[],
  asked: string,
  credentials: boolean,
): (request: HttpRequest) => string | undefined {
  if (!names.includes("*")) {
    const text = names.length === 0 ? undefined : names.join(",");
    return () => text;
  }
  return ({ headers }) => getHeader(headers, asked) ?? (credentials ? undefined : "*");
}
