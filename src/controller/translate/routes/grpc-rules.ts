/** Rules of GRPCRoutes. A gRPC method is the path `/<service>/<method>`. */
import { RE2JS } from "re2js";
import type { PathMatch, RouteMatch } from "../../../ir/ir.ts";
import type { GrpcRouteRule } from "../../../kube/objects.ts";
import { mergeLevels, NO_LEVEL } from "../../../policies/merge.ts";
import type { Referrer } from "../backends/backend-refs.ts";
import type { Findings } from "../model/findings.ts";
import { translateFilters } from "./filters.ts";
import {
  checkFields,
  checkRegex,
  MISSING_FILTER,
  type Rule,
  sessionOf,
  translateHeaders,
  translateHttpBackends,
  validMatches,
} from "./http-rules.ts";

type GrpcMatch = NonNullable<GrpcRouteRule["matches"]>[number];

const ANY: RouteMatch = { path: { type: "pathPrefix", value: "/" }, headers: [], query: [] };

export function translateGrpcRule(rule: GrpcRouteRule, index: number, referrer: Referrer): Rule {
  const { matches = [], filters = [], backendRefs = [] } = rule;
  const found = translateFilters(filters, { rule: index, path: ["filters"], phase: "route" }, referrer);
  const session = sessionOf(rule.sessionPersistence, index, referrer.findings);
  if (found !== undefined) checkFields(found, session, index, referrer.findings);
  return {
    index,
    ...(rule.name !== undefined && { name: rule.name }),
    matches: matches.length === 0 ? [ANY] : validMatches(matches, index, referrer.findings, translateMatch),
    policies: found === undefined ? NO_LEVEL : mergeLevels(found, session),
    backends: found === undefined ? [MISSING_FILTER] : translateHttpBackends(backendRefs, index, referrer),
  };
}

function translateMatch(match: GrpcMatch, where: string, rule: number, findings: Findings): RouteMatch {
  return {
    path: translateMethod(match.method, `${where}.method`, rule, findings),
    headers: translateHeaders(match.headers ?? [], `${where}.headers`, rule, findings),
    query: [],
  };
}

/** One segment of a path. */
const SEGMENT = "[^/]+";

function translateMethod(
  { type = "Exact", service = "", method = "" }: NonNullable<GrpcMatch["method"]> = {},
  where: string,
  rule: number,
  findings: Findings,
): PathMatch {
  if (type === "RegularExpression") {
    if (service !== "") checkRegex(service, `${where}.service`, rule, findings);
    if (method !== "") checkRegex(method, `${where}.method`, rule, findings);
    return { type: "regex", value: `/(?:${service || SEGMENT})/(?:${method || SEGMENT})` };
  }
  if (type !== "Exact") findings.invalidates(rule, `${where}.type: ${String(type)} is not supported`);
  if (service !== "" && method !== "") return { type: "exact", value: `/${service}/${method}` };
  if (service !== "") return { type: "pathPrefix", value: `/${service}` };
  if (method !== "") return { type: "regex", value: `/${SEGMENT}/${RE2JS.quote(method)}` };
  return ANY.path;
}
