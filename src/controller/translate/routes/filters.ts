/** Filters of HTTPRoutes and GRPCRoutes as the policies that run. */
import type { z } from "zod";
import { formatPath, type Path } from "../../../base/paths.ts";
import { STANDARD_ENVIRONMENT } from "../../../cel/index.ts";
import { levelOf, type PolicyLevel } from "../../../ir/origins.ts";
import type { HeaderFilter, HttpRouteFilter, PathModifier } from "../../../kube/objects.ts";
import { checkPolicies } from "../../../policies/compile.ts";
import { schema as cors } from "../../../policies/cors/schema.ts";
import { callPoliciesOf, kindsOf, mergeLevels, NO_LEVEL } from "../../../policies/merge.ts";
import type { PolicySet, SetKey } from "../../../policies/policy-set.ts";
import type { Mirror } from "../../../policies/request-mirror/schema.ts";
import { type RequestRedirect, schema as requestRedirect } from "../../../policies/request-redirect/schema.ts";
import { headerModifier } from "../../../policies/schema/fields.ts";
import { schema as urlRewrite } from "../../../policies/url-rewrite/schema.ts";
import { type Referrer, resolveBackend } from "../backends/backend-refs.ts";
import type { ListenerModel } from "../model/model.ts";
import { isCombined } from "../policy/parts.ts";
import { mergeAttached } from "../policy/policies.ts";
import { type FilterPhase, translateExtensionRef } from "./extension-ref.ts";
import { translateExternalAuth } from "./external-auth.ts";

/** The place of filters: in rule `rule`, at `path` in it. */
interface FilterPlace {
  readonly rule: number;
  readonly path: Path;
  readonly phase: FilterPhase;
}

/**
 * Filters as policies; undefined: one of them cannot be applied, and requests must not pass without it. Values that cannot be used
 * invalidate the rule.
 */
export function translateFilters(
  filters: readonly HttpRouteFilter[],
  place: FilterPlace,
  referrer: Referrer,
): PolicyLevel | undefined {
  if (filters.length === 0) return NO_LEVEL;
  const { findings } = referrer;
  const mirrors: Mirror[] = [];
  let missing = false;
  let level: PolicyLevel = NO_LEVEL;
  /** The type of the filter that has set each kind. */
  const owners = new Map<SetKey, string>();
  /** False: an earlier filter has set one of the kinds. */
  const claim = (kinds: readonly SetKey[], { type }: HttpRouteFilter, at: string): boolean => {
    const taken = kinds.filter((kind) => owners.has(kind) && !isCombined(place.phase, kind));
    for (const kind of kinds) owners.set(kind, type);
    if (taken.length === 0) return true;
    const message =
      KINDS[type] === undefined
        ? `an earlier filter sets ${taken.join(", ")} too; keep one of them`
        : `a rule can have one filter ${type}; merge them`;
    findings.invalidates(place.rule, `${at}: ${message}`, "IncompatibleFilters");
    return false;
  };
  const add = (policies: PolicySet, at: Path): void => {
    level = mergeLevels(
      level,
      levelOf(policies, () => ({ at })),
    );
  };
  for (const [i, filter] of filters.entries()) {
    const path = [...place.path, i];
    const at = formatPath(path);
    const kind = KINDS[filter.type];
    if (filter.type === "ExtensionRef") {
      const where = `rules[${place.rule}].${at}.extensionRef`;
      const policies = translateExtensionRef(filter.extensionRef ?? {}, place.phase, where, referrer);
      if (policies === undefined) missing = true;
      else if (claim(kindsOf(policies.set), filter, at)) level = mergeLevels(level, policies);
    } else if (filter.type === "RequestMirror" && filter.requestMirror !== undefined) {
      // Several of them are several mirrors.
      if (mirrors.length === 0 && !claim(["requestMirror"], filter, at)) continue;
      const mirror = translateMirror(filter.requestMirror, `rules[${place.rule}].${at}.requestMirror`, referrer);
      if (mirror === undefined) continue;
      mirrors.push(mirror);
      add({ requestMirror: [...mirrors] }, mirrors.length === 1 ? path : place.path);
    } else if (filter.type === "ExternalAuth" && filter.externalAuth !== undefined) {
      const policy = translateExternalAuth(filter.externalAuth, { ...place, path: at }, referrer);
      if (policy === undefined) missing = true;
      else if (claim(["extAuthz"], filter, at)) add({ extAuthz: policy }, path);
    } else if (kind === undefined) {
      findings.invalidates(place.rule, `${at}.type: ${filter.type} is not supported`);
    } else if (claim([kind], filter, at)) {
      const parsed = PARSERS[kind](filter);
      if (parsed.success) add({ [kind]: parsed.data }, path);
      else findings.invalidates(place.rule, `${at}: ${inWords(parsed.error)}`);
    }
  }
  const { set } = level;
  if (set.urlRewrite !== undefined && set.requestRedirect !== undefined)
    findings.invalidates(
      place.rule,
      `${formatPath(place.path)}: URLRewrite and RequestRedirect cannot be combined; remove one of them`,
      "IncompatibleFilters",
    );
  for (const { path, reason } of checkPolicies(set, place.phase, STANDARD_ENVIRONMENT))
    findings.invalidates(place.rule, `${formatPath(place.path)}: ${path.join(".")}: ${reason}`);
  return missing ? undefined : level;
}

const KINDS: Readonly<Record<string, keyof typeof PARSERS>> = {
  RequestHeaderModifier: "requestHeaderModifier",
  ResponseHeaderModifier: "responseHeaderModifier",
  RequestRedirect: "requestRedirect",
  URLRewrite: "urlRewrite",
  CORS: "cors",
};

const PARSERS = {
  requestHeaderModifier: (filter: HttpRouteFilter) => headerModifier.safeParse(headers(filter.requestHeaderModifier)),
  responseHeaderModifier: (filter: HttpRouteFilter) => headerModifier.safeParse(headers(filter.responseHeaderModifier)),
  requestRedirect: ({ requestRedirect: written = {} }: HttpRouteFilter) =>
    requestRedirect.safeParse({
      scheme: written.scheme,
      authority: redirectAuthority(written),
      path: pathChange(written.path),
      status: written.statusCode ?? 302,
    }),
  urlRewrite: ({ urlRewrite: { hostname, path } = {} }: HttpRouteFilter) =>
    urlRewrite.safeParse({
      authority: hostname === undefined ? undefined : { host: hostname },
      path: pathChange(path),
    }),
  cors: ({ cors: { maxAge, ...written } = {} }: HttpRouteFilter) =>
    cors.safeParse({ ...written, ...(maxAge !== undefined && { maxAge: `${maxAge}s` }) }),
};

function inWords({ issues }: z.ZodError): string {
  return issues.map(({ path, message }) => [...path, message].join(": ")).join("; ");
}

/** Names are compared without case, and the first of equal ones counts (HTTPHeader.name). */
function headers({ set, add, remove }: HeaderFilter = {}): object {
  return {
    ...(set !== undefined && { set: firstOfEach(set) }),
    ...(add !== undefined && { add: firstOfEach(add) }),
    ...(remove !== undefined && { remove }),
  };
}

function firstOfEach(fields: readonly { readonly name: string; readonly value: string }[]): Record<string, string> {
  const values = new Map<string, string>();
  for (const { name, value } of fields) if (!values.has(name.toLowerCase())) values.set(name.toLowerCase(), value);
  return Object.fromEntries(values);
}

function pathChange(path: PathModifier | undefined): object | undefined {
  if (path === undefined) return undefined;
  return path.type === "ReplaceFullPath"
    ? { full: path.replaceFullPath ?? "/" }
    : { prefix: path.replacePrefixMatch ?? "/" };
}

function redirectAuthority({
  scheme,
  hostname,
  port,
}: NonNullable<HttpRouteFilter["requestRedirect"]>): object | undefined {
  if (port === undefined) return hostname === undefined ? undefined : { host: hostname };
  if (hostname === undefined) return { port };
  return { full: port === DEFAULT_PORTS[scheme ?? ""] ? hostname : `${hostname}:${port}` };
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { http: 80, https: 443 };

/**
 * A redirect as it is at a listener: without scheme and port, its port is the listener's, not the one that the client names (Gateway
 * API, HTTPRequestRedirectFilter.port). Default ports are not written.
 */
export function redirectAt(redirect: RequestRedirect, { port, protocol }: ListenerModel): RequestRedirect {
  const { scheme, authority } = redirect;
  const isDefault = port === DEFAULT_PORTS[protocol === "HTTPS" ? "https" : "http"];
  if (typeof authority === "object" && "full" in authority && scheme === undefined) {
    const written = authority.full.replace(/:\d+$/, "");
    return isDefault && authority.full === `${written}:${port}`
      ? { ...redirect, authority: { full: written } }
      : redirect;
  }
  if (scheme !== undefined || (typeof authority === "object" && "port" in authority)) return redirect;
  if (typeof authority === "object" && "host" in authority)
    return { ...redirect, authority: { full: isDefault ? authority.host : `${authority.host}:${port}` } };
  return { ...redirect, authority: { port } };
}

/** undefined: the backend cannot be called, so nothing is mirrored (HTTPRequestMirrorFilter.backendRef). */
function translateMirror(
  { backendRef, percent, fraction }: NonNullable<HttpRouteFilter["requestMirror"]>,
  where: string,
  referrer: Referrer,
): Mirror | undefined {
  const { target, policies: own, targets } = resolveBackend(referrer, backendRef, where);
  if (target.type === "invalid") return undefined;
  const { set: policies } = mergeAttached(referrer.read, "backend", targets, own);
  const share = fraction === undefined ? (percent ?? 100) / 100 : fraction.numerator / (fraction.denominator ?? 100);
  return {
    target,
    percentage: Math.min(share, 1),
    ...(Object.keys(policies).length > 0 && { policies: callPoliciesOf(policies) }),
  };
}
