/** Rules of HTTPRoutes: matches, filters, backends, timeouts and retries. */
import { RE2JS } from "re2js";
import { parseDuration } from "../../../base/durations.ts";
import { formatPath, type Path } from "../../../base/paths.ts";
import { patternProblem } from "../../../base/pattern-problem.ts";
import { STANDARD_ENVIRONMENT } from "../../../cel/index.ts";
import type { PathMatch, RouteBackend, RouteMatch, ValueMatch } from "../../../ir/ir.ts";
import { levelOf, type PolicyLevel } from "../../../ir/origins.ts";
import type { HttpBackendReference, HttpRouteMatch, HttpRouteRule, NameMatch } from "../../../kube/objects.ts";
import { checkPolicies } from "../../../policies/compile.ts";
import { kindsOf, mergeLevels, NO_LEVEL, NO_POLICY_SET } from "../../../policies/merge.ts";
import type { PolicySet } from "../../../policies/policy-set.ts";
import { schema as sessionPersistence } from "../../../policies/session-persistence/schema.ts";
import { invalid, type Referrer, type ResolvedBackend, resolveBackend } from "../backends/backend-refs.ts";
import type { Findings } from "../model/findings.ts";
import { translateFilters } from "./filters.ts";

/** A rule of a route, before it meets listeners and the policies around it. */
export interface Rule {
  readonly index: number;
  readonly name?: string;
  /** Where it is written in the object. Default: entry `index` of `spec.rules`. */
  readonly at?: Path;
  /** Those that are valid; empty for routes of connections. */
  readonly matches: readonly RouteMatch[];
  /** Policies from the rule's own filters and fields. */
  readonly policies: PolicyLevel;
  readonly backends: readonly RuleBackend[];
}

export interface RuleBackend extends ResolvedBackend, Pick<RouteBackend, "weight" | "at"> {
  /** Policies from the filters of a backendRef. */
  readonly filters: PolicyLevel;
}

/** Fields of policies as HTTPRoutes name them. */
const ROUTE_FIELDS: Readonly<Record<string, string>> = {
  "timeout.requestTimeout": "timeouts.request",
  "timeout.backendRequestTimeout": "timeouts.backendRequest",
};

const ANY: RouteMatch = { path: { type: "pathPrefix", value: "/" }, headers: [], query: [] };

export function translateHttpRule(rule: HttpRouteRule, index: number, referrer: Referrer): Rule {
  const { findings } = referrer;
  const { matches = [], filters = [], backendRefs = [] } = rule;
  const translated = validMatches(matches, index, findings, translateMatch);
  const found = translateFilters(filters, { rule: index, path: ["filters"], phase: "route" }, referrer);
  checkPrefixes(found?.set ?? NO_POLICY_SET, translated, index, findings);
  const session = sessionOf(rule.sessionPersistence, index, findings);
  const limits = mergeLevels(
    levelOf(timeoutOf(rule, index, findings), () => ({ at: ["timeouts"] })),
    levelOf(retryOf(rule, index, findings), () => ({ at: ["retry"] })),
  );
  if (found !== undefined) checkFields(found, mergeLevels(limits, session), index, findings);
  // Such as a timeout of years, which proxies would reject together with everything else that they are sent.
  for (const { path, reason } of checkPolicies(limits.set, "route", STANDARD_ENVIRONMENT))
    findings.invalidates(index, `${ROUTE_FIELDS[path.join(".")] ?? path.join(".")}: ${reason}`);
  return {
    index,
    ...(rule.name !== undefined && { name: rule.name }),
    matches: matches.length === 0 ? [ANY] : translated,
    policies: found === undefined ? NO_LEVEL : mergeLevels(found, limits, session),
    backends: found === undefined ? [MISSING_FILTER] : translateHttpBackends(backendRefs, index, referrer),
  };
}

/** A rule says the same twice: in a field such as `timeouts`, and in a TracegatePolicy that is one of its filters. */
export function checkFields(filters: PolicyLevel, fields: PolicyLevel, rule: number, findings: Findings): void {
  const twice = kindsOf(fields.set).filter((kind) => filters.set[kind] !== undefined);
  for (const kind of twice) {
    const field = formatPath(fields.sources[kind]?.[0]?.at ?? []);
    findings.invalidates(
      rule,
      `filters: a TracegatePolicy sets ${kind}, as ${field} does; keep one of them`,
      "IncompatibleFilters",
    );
  }
}

/**
 * Requests that a missing or invalid filter should have changed or rejected get 500 (HTTPRouteFilter.extensionRef): by
 * another rule they could reach a backend without the protection that the filter is.
 */
export const MISSING_FILTER: RuleBackend = { ...invalid("filter"), weight: 1, at: ["filters"], filters: NO_LEVEL };

export function translateHttpBackends(
  refs: readonly HttpBackendReference[],
  rule: number,
  referrer: Referrer,
): readonly RuleBackend[] {
  return refs.map((ref, i) => {
    const { weight = 1, filters = [] } = ref;
    const backend = resolveBackend(referrer, ref, `rules[${rule}].backendRefs[${i}]`);
    const path = ["backendRefs", i, "filters"];
    const own = translateFilters(filters, { rule, path, phase: "backend" }, referrer);
    return own === undefined ? { ...MISSING_FILTER, weight, at: path } : { ...backend, weight, filters: own };
  });
}

/** A match with a mistake selects nothing: what it should have selected is not known. */
export function validMatches<M>(
  matches: readonly M[],
  rule: number,
  findings: Findings,
  translate: (match: M, where: string, rule: number, findings: Findings) => RouteMatch,
): readonly RouteMatch[] {
  return matches.flatMap((match, i) => {
    const before = findings.invalid.length;
    const translated = translate(match, `matches[${i}]`, rule, findings);
    return findings.invalid.length === before ? translated : [];
  });
}

function translateMatch(match: HttpRouteMatch, where: string, rule: number, findings: Findings): RouteMatch {
  const { headers = [], queryParams = [], method } = match;
  return {
    path: translatePath(match.path, `${where}.path`, rule, findings),
    ...(method !== undefined && { method }),
    headers: translateHeaders(headers, `${where}.headers`, rule, findings),
    query: translateValues(queryParams, `${where}.queryParams`, rule, findings),
  };
}

/** Names of headers are compared without case. */
export function translateHeaders(
  matches: readonly NameMatch[],
  where: string,
  rule: number,
  findings: Findings,
): readonly ValueMatch[] {
  const lower = matches.map((match) => ({ ...match, name: match.name.toLowerCase() }));
  return translateValues(lower, where, rule, findings);
}

/** Of several with one name the first counts (HTTPHeaderMatch.name, HTTPQueryParamMatch.name). */
function translateValues(
  matches: readonly NameMatch[],
  where: string,
  rule: number,
  findings: Findings,
): readonly ValueMatch[] {
  const values = new Map<string, ValueMatch>();
  for (const [i, { type = "Exact", name, value }] of matches.entries()) {
    if (type === "RegularExpression") checkRegex(value, `${where}[${i}].value`, rule, findings);
    else if (type !== "Exact") findings.invalidates(rule, `${where}[${i}].type: ${type} is not supported`);
    if (!values.has(name)) values.set(name, { name, type: type === "Exact" ? "exact" : "regex", value });
  }
  return [...values.values()];
}

function translatePath(
  { type = "PathPrefix", value = "/" }: NonNullable<HttpRouteMatch["path"]> = {},
  where: string,
  rule: number,
  findings: Findings,
): PathMatch {
  switch (type) {
    case "Exact":
      return { type: "exact", value };
    case "PathPrefix":
      return { type: "pathPrefix", value };
    case "RegularExpression":
      checkRegex(value, `${where}.value`, rule, findings);
      return { type: "regex", value };
    default:
      findings.invalidates(rule, `${where}.type: ${String(type)} is not supported`);
      return { type: "exact", value };
  }
}

/** The data plane compiles patterns with the same library: what passes here does not fail there. */
export function checkRegex(pattern: string, where: string, rule: number, findings: Findings): void {
  try {
    RE2JS.compile(pattern);
  } catch (error) {
    findings.invalidates(rule, `${where}: ${JSON.stringify(pattern)}: ${patternProblem(error)}`);
  }
}

/** Replacing the matched prefix needs one (HTTPPathModifier.replacePrefixMatch). */
function checkPrefixes(
  { urlRewrite, requestRedirect }: PolicySet,
  matches: readonly RouteMatch[],
  rule: number,
  findings: Findings,
): void {
  const replaces = [urlRewrite, requestRedirect].some((each) => each?.path !== undefined && "prefix" in each.path);
  if (replaces && matches.some(({ path }) => path.type !== "pathPrefix"))
    findings.invalidates(rule, "filters: ReplacePrefixMatch needs matches of type PathPrefix only");
}

function timeoutOf({ timeouts = {} }: HttpRouteRule, rule: number, findings: Findings): PolicySet {
  const request = duration(timeouts.request, "timeouts.request", rule, findings);
  const backendRequest = duration(timeouts.backendRequest, "timeouts.backendRequest", rule, findings);
  if (request === undefined && backendRequest === undefined) return NO_POLICY_SET;
  return {
    timeout: {
      ...(request !== undefined && { requestTimeout: request }),
      ...(backendRequest !== undefined && { backendRequestTimeout: backendRequest }),
    },
  };
}

/** Without `attempts` a failed request is retried once; 0 means never. */
function retryOf({ retry }: HttpRouteRule, rule: number, findings: Findings): PolicySet {
  if (retry === undefined || retry.attempts === 0) return NO_POLICY_SET;
  const backoff = duration(retry.backoff ?? "0s", "retry.backoff", rule, findings);
  if (backoff === undefined) return NO_POLICY_SET;
  return { retry: { attempts: Math.min(retry.attempts ?? 1, 255), backoff, codes: [...(retry.codes ?? [])] } };
}

/** `sessionPersistence` of a rule (GEP-1619): has the fields of the policy. */
export function sessionOf(written: unknown, rule: number, findings: Findings): PolicyLevel {
  if (written === undefined) return NO_LEVEL;
  const { success, data, error } = sessionPersistence.safeParse(written);
  if (success) return levelOf({ sessionPersistence: data }, (field) => ({ at: [field] }));
  for (const { path, message } of error.issues)
    findings.invalidates(rule, `${["sessionPersistence", ...path].join(".")}: ${message}`);
  return NO_LEVEL;
}

/** Durations of GEP-2257 are a subset of those that the configuration file takes. */
function duration(
  text: string | undefined,
  where: string,
  rule: number,
  findings: Findings,
): ReturnType<typeof parseDuration> {
  if (text === undefined) return undefined;
  const parsed = parseDuration(text);
  if (parsed === undefined) findings.invalidates(rule, `${where}: ${text} is not a duration such as 10s or 500ms`);
  return parsed;
}
