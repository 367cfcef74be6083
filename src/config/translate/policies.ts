import type { CelEnvironment } from "../../cel/index.ts";
import type { CallPolicies } from "../../policies/calls/schema.ts";
import { checkPolicies } from "../../policies/compile.ts";
import { NO_POLICY_SET } from "../../policies/merge.ts";
import type { PolicyProblem } from "../../policies/policy-error.ts";
import type { PolicySet } from "../../policies/policy-set.ts";
import type { RequestRedirect } from "../../policies/request-redirect/schema.ts";
import { namesMethods } from "../../policies/retry/index.ts";
import type { HeaderModifier } from "../../policies/shared/header-modifier-schema.ts";
import type { UrlRewrite } from "../../policies/url-rewrite/schema.ts";
import type { Phase } from "../../trace/events.ts";
import { adviseOnPolicies, warnAboutDenyRules } from "../explain/advice.ts";
import type { Path } from "../parse/paths.ts";
import { translateBackendTls } from "./backend-tls.ts";
import { translateBackendTunnel } from "./backend-tunnel.ts";
import type { CalledTargets, TranslatePolicies } from "./called-targets.ts";
import type { Context } from "./context.ts";
import { translateOidc } from "./oidc.ts";
import type { Sources } from "./sources.ts";

/** A policy object as the schema gives it: absent kinds are missing or undefined. */
export type PolicyInput = { readonly [Kind in keyof PolicySet]?: unknown };

/** The policies at `path` as runtime types; what they themselves refuse is reported, as near as they tell. */
export function translatePolicies(
  input: PolicyInput | undefined,
  phase: Phase,
  path: Path,
  { sources, calledTargets, report, cel }: Pick<Context, "sources" | "calledTargets" | "report" | "cel">,
): PolicySet {
  if (input === undefined) return NO_POLICY_SET;
  const set = toPolicySet(input, path, sources, calledTargets, report);
  if (validatePolicies(set, phase, path, report, cel)) {
    noteRetry(set, path, report, cel);
    adviseOnPolicies(set, path, report);
    const { authorization } = set;
    if (authorization !== undefined)
      warnAboutDenyRules(authorization.rules, "request", [...path, "authorization", "rules"], report, cel);
  }
  return set;
}

/** The policies of calls to a service. */
export const translateCallPolicies: TranslatePolicies = (input, path, context) =>
  // Of backends, policies have no conditions, which has been reported.
  translatePolicies(input as PolicyInput, "backend", path, context) as CallPolicies;

/** Drops absent kinds, so that an empty set has no keys. */
function toPolicySet(
  input: PolicyInput,
  path: Path,
  sources: Sources,
  calledTargets: CalledTargets,
  report: Context["report"],
): PolicySet {
  const set: Record<string, unknown> = {};
  for (const [kind, value] of Object.entries(input)) {
    if (value === undefined) continue;
    const filled = withoutUndefined(sources.fill(kind, value, [...path, kind]));
    if (kind === "oidc") set[kind] = translateOidc(filled, value, [...path, kind], sources, report);
    else if (kind === "backendTLS") set[kind] = translateBackendTls(filled, [...path, kind], sources, report);
    else if (kind === "backendTunnel")
      set[kind] = translateBackendTunnel(filled, [...path, kind], sources, calledTargets, report);
    else set[kind] = calledTargets.fill(kind, filled, [...path, kind], translateCallPolicies);
  }
  return set as { requestHeaderModifier?: HeaderModifier; urlRewrite?: UrlRewrite; requestRedirect?: RequestRedirect };
}

export function withoutUndefined(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined));
}

/** Reports what the policies themselves refuse, such as a header that may not be set. False when one does. */
function validatePolicies(
  set: PolicySet,
  phase: Phase,
  path: Path,
  report: Context["report"],
  cel: CelEnvironment,
): boolean {
  const problems = checkPolicies(set, phase, cel);
  for (const problem of problems) reportProblem(problem, path, report);
  return problems.length === 0;
}

/** Reports what is wrong at `path` or below. */
export function reportProblem({ path: at, key, reason }: PolicyProblem, path: Path, report: Context["report"]): void {
  report([...path, ...at], { message: reason }, key);
}

function noteRetry({ retry }: PolicySet, path: Path, report: Context["report"], cel: CelEnvironment): void {
  if (retry === undefined || namesMethods(retry, cel)) return;
  const message = `repeats every method, so a POST may take effect twice; to keep it to idempotent methods, add precondition: ${IDEMPOTENT}`;
  report([...path, "retry"], { message, note: true });
}

const IDEMPOTENT = `'request.method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]'`;
