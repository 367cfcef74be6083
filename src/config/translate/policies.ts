import { messageOf } from "../../base/errors.ts";
import type { CelEnvironment } from "../../cel/index.ts";
import { compilePolicies } from "../../policies/compile.ts";
import { NO_CALLOUTS, type PolicyEnvironment } from "../../policies/deps.ts";
import { createBuckets, TokenBuckets } from "../../policies/local-rate-limit/buckets.ts";
import { NO_POLICY_SET } from "../../policies/merge.ts";
import type {
  CallPolicies,
  HeaderModifier,
  PolicySet,
  RequestRedirect,
  UrlRewrite,
} from "../../policies/policy-set.ts";
import { namesMethods } from "../../policies/retry/index.ts";
import { CredentialNames } from "../../policies/shared/credentials/names.ts";
import { OwnFields } from "../../policies/shared/own-fields.ts";
import type { Phase } from "../../trace/events.ts";
import { sensitiveHeaders } from "../../trace/redaction.ts";
import { adviseOnPolicies } from "../explain/advice.ts";
import { warnAboutDenyRules } from "../explain/deny-rules.ts";
import { translateBackendTls } from "./backend-tls.ts";
import { translateBackendTunnel } from "./backend-tunnel.ts";
import type { CalledTargets, TranslatePolicies } from "./called-targets.ts";
import type { Context, Path } from "./context.ts";
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
  if (tryPolicies(set, phase, path, report, cel)) {
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

/** Policies are created here only to hear what they refuse. */
const CHECKING: Omit<PolicyEnvironment, "cel"> = {
  hidden: sensitiveHeaders([]),
  callouts: NO_CALLOUTS,
  credentials: new CredentialNames(),
  ownFields: new OwnFields(),
  buckets: new TokenBuckets(createBuckets(1)),
  oidcCookieKey: new Uint8Array(32),
};

/** Reports what the policies themselves refuse, such as a header that may not be set, as near as they tell. False when one does. */
function tryPolicies(
  set: PolicySet,
  phase: Phase,
  path: Path,
  report: Context["report"],
  cel: CelEnvironment,
): boolean {
  let usable = true;
  for (const [kind, value] of Object.entries(set)) {
    const refusal = refusalOf(kind, value, phase, cel);
    if (refusal === undefined) continue;
    usable = false;
    const { field, message } = refusal;
    const edits = kind.endsWith("HeaderModifier") ? wrongEdits(kind, value as HeaderModifier, phase, cel) : [];
    if (edits.length === 0) report([...path, ...fieldPath(field)], { message });
    for (const edit of edits) report([...path, kind, ...edit.at], { message: edit.message }, edit.key);
  }
  return usable;
}

function noteRetry({ retry }: PolicySet, path: Path, report: Context["report"], cel: CelEnvironment): void {
  if (retry === undefined || namesMethods(retry, cel)) return;
  const message = `repeats every method, so a POST may take effect twice; to keep it to idempotent methods, add precondition: ${IDEMPOTENT}`;
  report([...path, "retry"], { message, note: true });
}

const IDEMPOTENT = `'request.method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]'`;

interface WrongEdit {
  readonly at: Path;
  /** The header's name where it is a key. */
  readonly key?: string;
  readonly message: string;
}

/** A modifier tells the first header that it refuses: asked header by header, it tells all. */
function wrongEdits(
  kind: string,
  { add = {}, set = {}, remove = [] }: HeaderModifier,
  phase: Phase,
  cel: CelEnvironment,
): WrongEdit[] {
  const wrong: WrongEdit[] = [];
  for (const [action, headers] of Object.entries({ add, set }))
    for (const [name, value] of Object.entries(headers)) {
      const refusal = refusalOf(kind, { [action]: { [name]: value } }, phase, cel);
      if (refusal !== undefined) wrong.push({ at: [action], key: name, message: refusal.message });
    }
  for (const [i, name] of remove.entries()) {
    const refusal = refusalOf(kind, { remove: [name] }, phase, cel);
    if (refusal !== undefined) wrong.push({ at: ["remove", i], message: refusal.message });
  }
  return wrong;
}

/** Why a policy cannot be used, and the field that its message begins with: `urlRewrite.path.prefix: …`. */
function refusalOf(kind: string, value: unknown, phase: Phase, cel: CelEnvironment): Refusal | undefined {
  return refusalBy(kind, () => compilePolicies({ [kind]: value }, phase, { ...CHECKING, cel }, ""));
}

interface Refusal {
  readonly field: string;
  readonly message: string;
}

/** Why `attempt` throws; `kind` is the field when its message names none. */
export function refusalBy(kind: string, attempt: () => unknown): Refusal | undefined {
  try {
    attempt();
    return undefined;
  } catch (error) {
    const text = messageOf(error);
    const [, field = kind, message = text] = /^([\w.]+): (.*)$/s.exec(text) ?? [];
    return { field, message };
  }
}

/** `localRateLimit.0.maxTokens` as a path: numbers are places in lists. */
export function fieldPath(field: string): Path {
  return field.split(".").map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}
