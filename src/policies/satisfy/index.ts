/**
 * `satisfy` (docs/policies/satisfy.md): requires one of several credentials. In: alternatives, each of them a policy that authenticates.
 * Out: what the first satisfied one says about the client and a request without the credentials of any, a redirect to a login, or
 * 401 with the challenges of all. Runs in the gateway and route phases, after the policies that must all be satisfied.
 *
 * A wrong credential beside a valid one changes nothing: whoever sends both could send the valid one alone. It is removed, because the
 * backend would take it for verified.
 */
import { type ErrorCode, GatewayError } from "../../base/errors.ts";
import type { CelEnvironment } from "../../cel/index.ts";
import type { LocalReply } from "../../http/message/message.ts";
import type { Phase } from "../../trace/events.ts";
import { apiKey, prepareApiKey } from "../api-key/index.ts";
import { basicAuth, prepareBasicAuth } from "../basic-auth/index.ts";
import { applied, Decisions, rejected, skipped } from "../contract/decisions.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import { MissingCredential } from "../contract/missing-credential.ts";
import { within } from "../contract/policy-error.ts";
import type {
  Admission,
  Authenticator,
  PolicyContext,
  PolicyHooks,
  PolicyTrace,
  RequestOutcome,
  Verified,
} from "../contract/types.ts";
import { definePolicy, type Hidden } from "../define/policy.ts";
import { ipAccess, prepareIpAccess } from "../ip-access/index.ts";
import { jwtAuth, prepareJwtAuth } from "../jwt-auth/index.ts";
import { oidc, prepareOidc } from "../oidc/index.ts";
import { isPreflight } from "../shared/preflight.ts";
import type { Alternative, Satisfy } from "./schema.ts";

const KIND = "satisfy";

type AlternativeKind = keyof Alternative;

/** Why an alternative is not satisfied. `missing`: the request has no such credential. `unchecked`: it may be valid. */
interface Failure {
  readonly kind: AlternativeKind;
  readonly what: "missing" | "wrong" | "unchecked";
  /** Made when it is first asked for. */
  readonly error: () => GatewayError;
}

type SatisfyDecision =
  | { readonly code: "satisfied"; readonly kind: AlternativeKind; readonly position: number; readonly of: number }
  | { readonly code: "none" | "login" | "unchecked"; readonly failures: readonly Failure[] }
  | { readonly code: "preflight" };

const decisions = new Decisions<SatisfyDecision>(KIND, {
  satisfied: ({ kind, position, of }) =>
    applied(`${kind} is satisfied, alternative ${position} of ${of}`, { satisfied: true, by: kind }),
  none: ({ failures }) => rejected(`no alternative is satisfied: ${textOf(failures)}`, { satisfied: false }),
  login: ({ failures }) =>
    applied(`no alternative is satisfied: ${textOf(failures)}; redirects to the login`, {
      satisfied: false,
      action: "login",
    }),
  preflight: () => skipped("a CORS preflight carries no credentials"),
  unchecked: ({ failures }) =>
    rejected(`an alternative could not be checked, and no other is satisfied: ${textOf(failures)}`, {
      satisfied: false,
    }),
});

function textOf(failures: readonly Failure[]): string {
  return failures
    .map(({ kind, error: make }) => {
      const error = make();
      // Whoever shows the text of this decision redacts all of it.
      const why = error.why?.({ hiddenHeaders: NO_HEADERS, input: (_path, value) => value });
      return `${kind}: ${why?.text ?? error.message}`;
    })
    .join("; ");
}

const NO_HEADERS: ReadonlySet<string> = new Set();

export const satisfy = definePolicy({
  decisions,
  kind: KIND,
  phases: ["gateway", "route"],
  prepare,
  redact: (config: Satisfy, hidden) => shown(config, (each) => view(each, hidden, "redact")),
  traceView: (config, hidden) => shown(config, (each) => view(each, hidden, "traceView")),
  // An inner level adds a condition: its alternatives would otherwise open what the outer one protects.
  merge: (outer, inner) => [...outer, ...inner],
});

/** As users write it; of several levels a list. */
function shown(config: Satisfy, show: (alternative: Alternative) => unknown): unknown {
  const levels = config.map((level) => {
    const alternatives = level.any.map(show);
    return { any: alternatives };
  });
  return levels.length === 1 ? levels[0] : levels;
}

function view(alternative: Alternative, hidden: Hidden, how: "redact" | "traceView"): object {
  const { apiKey: key, basicAuth: password, ipAccess: address, jwtAuth: token, oidc: session } = alternative;
  return {
    ...(key && { apiKey: apiKey[how](key, hidden) }),
    ...(password && { basicAuth: basicAuth[how](password, hidden) }),
    ...(address && { ipAccess: ipAccess[how](address, hidden) }),
    ...(token && { jwtAuth: jwtAuth[how](token, hidden) }),
    ...(session && { oidc: oidc[how](session, hidden) }),
  };
}

interface Prepared {
  readonly kind: AlternativeKind;
  readonly config: object;
  readonly bind: (deps: PolicyDeps) => Authenticator;
}

interface Bound {
  readonly kind: AlternativeKind;
  readonly authenticator: Authenticator;
}

function prepare(config: Satisfy, cel: CelEnvironment): (deps: PolicyDeps) => PolicyHooks {
  const prepared = config.map((level) =>
    level.any.map((each, i) => within(["any", i], () => prepareAlternative(each, cel))),
  );
  return (deps) => {
    const levels = prepared.map((level, at) =>
      level.map(({ kind, config: own, bind }, i): Bound => {
        const its = { ...deps, identity: `${deps.identity} ${at} ${i}` };
        return { kind, authenticator: bind(deps.rehearsed?.(its, kind, own) ?? its) };
      }),
    );
    return hooksOf(levels, deps.phase);
  };
}

function prepareAlternative(alternative: Alternative, cel: CelEnvironment): Prepared {
  const { apiKey: key, basicAuth: password, ipAccess: address, jwtAuth: token, oidc: session } = alternative;
  const of = <Config extends object>(
    kind: AlternativeKind,
    config: Config,
    prepareKind: (config: Config, cel: CelEnvironment) => Prepared["bind"],
  ): Prepared => ({ kind, config, bind: within([kind], () => prepareKind(config, cel)) });
  if (key !== undefined) return of("apiKey", key, prepareApiKey);
  if (password !== undefined) return of("basicAuth", password, prepareBasicAuth);
  if (address !== undefined) return of("ipAccess", address, prepareIpAccess);
  if (token !== undefined) return of("jwtAuth", token, prepareJwtAuth);
  if (session !== undefined) return of("oidc", session, prepareOidc);
  throw new Error("an alternative without a policy has passed the schema");
}

function hooksOf(levels: readonly (readonly Bound[])[], phase: Phase): PolicyHooks {
  const all = levels.flat().map(({ authenticator }) => authenticator);
  const serving = all.filter(({ serve }) => serve !== undefined);

  const admit = (context: PolicyContext, admissions: readonly Admission[]): undefined => {
    // First: `oidc` may set a field that another alternative takes its credential from.
    for (const each of all) each.discard(context);
    for (const each of admissions) each(context);
  };
  /** Tries the levels from `level` on; `admissions` are of those before it. */
  const check = (context: PolicyContext, level: number, admissions: readonly Admission[]): RequestOutcome => {
    const alternatives = levels[level];
    if (alternatives === undefined) return admit(context, admissions);
    const proceed = (result: Result): RequestOutcome =>
      typeof result === "function" ? check(context, level + 1, [...admissions, result]) : result;
    const result = firstOf(alternatives, context, phase, 0, []);
    return result instanceof Promise ? result.then(proceed) : proceed(result);
  };
  return {
    onRequest(context) {
      for (const each of serving) {
        const response = each.serve?.(context);
        if (response !== undefined) return response;
      }
      return check(context, 0, []);
    },
  };
}

/** What a level leads to: `undefined` leaves the request to `cors` of the route. */
type Result = Admission | LocalReply | undefined;

/** The first alternative from `from` on that is satisfied, or the response that leads to a login. Throws a GatewayError if none is. */
function firstOf(
  alternatives: readonly Bound[],
  context: PolicyContext,
  phase: Phase,
  from: number,
  failures: readonly Failure[],
): Result | Promise<Result> {
  const trace = context.trace?.within(KIND);
  const failed = [...failures];
  for (const [i, { kind, authenticator }] of alternatives.entries()) {
    if (i < from) continue;
    /** Undefined: the alternative is not satisfied. */
    const conclude = (found: Awaited<Verified>): Admission | undefined => {
      if (typeof found === "function")
        context.trace?.report(decisions, { code: "satisfied", kind, position: i + 1, of: alternatives.length });
      else if (found instanceof MissingCredential) failed.push(missing(kind, found, trace));
      return typeof found === "function" ? found : undefined;
    };
    try {
      const verified = authenticator.verify(context, trace);
      if (verified instanceof Promise)
        return verified
          .then(conclude, (error: unknown) => void failed.push(failureOf(kind, error)))
          .then((admission) => admission ?? firstOf(alternatives, context, phase, i + 1, failed));
      const admission = conclude(verified);
      if (admission !== undefined) return admission;
    } catch (error) {
      failed.push(failureOf(kind, error));
    }
  }
  return refuse(alternatives, context, phase, failed);
}

/** A trace gets the decision in its turn, with the error. */
function missing(kind: AlternativeKind, { error }: MissingCredential, trace: PolicyTrace | undefined): Failure {
  let made = trace && error();
  return {
    kind,
    what: "missing",
    error: () => {
      made ??= error();
      return made;
    },
  };
}

/** Errors that mean that a request does not satisfy an alternative; others end the request. */
const FAILURES: ReadonlyMap<ErrorCode, Failure["what"]> = new Map([
  ["TG_AUTHORIZATION", "missing"],
  ["TG_API_KEY", "wrong"],
  ["TG_BASIC_AUTH", "wrong"],
  ["TG_JWT", "wrong"],
  ["TG_BASIC_AUTH_BUSY", "unchecked"],
  ["TG_DOCUMENT_MISSING", "unchecked"],
  // The provider cannot be reached to refresh a session, which may be valid.
  ["TG_OIDC", "unchecked"],
]);

function failureOf(kind: AlternativeKind, error: unknown): Failure {
  if (!(error instanceof GatewayError)) throw error;
  const what = FAILURES.get(error.code);
  if (what === undefined) throw error;
  return { kind, what, error: () => error };
}

/** Returns the response that leads to a login, or throws; of a preflight, the error is kept. */
function refuse(
  alternatives: readonly Bound[],
  context: PolicyContext,
  phase: Phase,
  failures: readonly Failure[],
): LocalReply | undefined {
  const { trace } = context;
  // It carries no credentials. `cors` of this phase would have responded already, but that of the route may do so.
  if (phase === "gateway" && isPreflight(context.request)) {
    trace?.report(decisions, { code: "preflight" });
    context.requestMetadata.unlessCors = { policy: KIND, error: rejection(undefined, failures) };
    return undefined;
  }
  const unchecked = failures.find(({ what }) => what === "unchecked");
  if (unchecked !== undefined) {
    trace?.report(decisions, { code: "unchecked", failures });
    throw unchecked.error();
  }
  // A client with a wrong credential has to learn that it is wrong.
  if (failures.every(({ what }) => what === "missing"))
    for (const { authenticator } of alternatives) {
      const reply = authenticator.login?.(context);
      if (reply === undefined) continue;
      trace?.report(decisions, { code: "login", failures });
      return reply;
    }
  throw rejection(trace, failures);
}

/** The error with the challenges of all alternatives. */
function rejection(trace: PolicyTrace | undefined, failures: readonly Failure[]): GatewayError {
  const decision = { code: "none", failures } as const;
  for (const [name, status] of CHALLENGES) {
    const headers = challengesOf(failures, name);
    if (headers.length > 0) return decisions.reject(trace, decision, "TG_SATISFY", { status, headers });
  }
  // There are only addresses, and no credential would help.
  return decisions.reject(trace, decision, "TG_AUTHORIZATION");
}

/** Of servers and of proxies (RFC 9110, sections 11.6.1 and 11.7.1); one response has one status. */
const CHALLENGES = [
  ["www-authenticate", 401],
  ["proxy-authenticate", 407],
] as const;

/** The fields with the challenges of all alternatives; equal ones once. */
function challengesOf(failures: readonly Failure[], name: string): string[] {
  const values = failures.flatMap(({ error }) => {
    const { headers } = error();
    return headers.filter((_value, i) => i % 2 === 1 && headers[i - 1] === name);
  });
  return [...new Set(values)].flatMap((value) => [name, value]);
}
