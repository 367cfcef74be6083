import { GatewayError, messageOf } from "../../base/errors.ts";
import type { CelError, Condition, WhenFailed } from "../../cel/index.ts";
import type { PolicyDeps } from "../deps.ts";
import type { Conditional, PolicyKind } from "../policy-set.ts";
import { afterRequestBody, afterWholeBody } from "../shared/bodies.ts";
import type { CompiledPolicy, PolicyContext, RequestOutcome } from "../types.ts";

type Create<Config> = (config: Config, deps: PolicyDeps) => CompiledPolicy;

interface Alternative {
  /** undefined = applies when none before it does. */
  readonly condition: Condition | undefined;
  readonly policy: CompiledPolicy;
}

/** What can refuse a request. A body that is too long for the conditions must not be the way past it. */
const GATES: ReadonlySet<PolicyKind> = new Set(["extAuthz", "extProc", "localRateLimit", "remoteRateLimit"]);

/** Whether a policy's configuration is a list of alternatives. */
export function isConditional(config: unknown): config is Conditional<object> {
  return typeof config === "object" && config !== null && "conditional" in config;
}

/**
 * Makes a policy's `create` take alternatives too: the first whose condition is true applies, for the response as well
 * (reference 1.11). A condition that fails ends the request with TG_INVALID_REQUEST: whichever alternative came next, it could
 * be the wrong one. Where a policy that can refuse depends on a body that is too long to be looked at, the request ends with
 * TG_BODY_TOO_LARGE. `createEntry` creates one alternative; default: `create`.
 */
export function conditional<Config, Entry extends object>(
  kind: PolicyKind,
  create: Create<Config>,
  createEntry: Create<Entry>,
): Create<Config | Conditional<Entry>> {
  return (config, deps) => {
    if (!isConditional(config)) return create(config as Config, deps);
    const { conditional: entries } = config as Conditional<Entry>;
    const alternatives = entries.map(({ condition, ...rest }, i): Alternative => {
      const where = `${kind}.conditional.${i}`;
      if (condition === undefined && i < entries.length - 1)
        throw new Error(
          `${where}: the entries after one without condition never apply; add one, or move it to the end`,
        );
      return {
        condition: condition === undefined ? undefined : deps.cel.compileCondition(condition, "request"),
        policy: createAt(where, kind, () =>
          createEntry(rest as unknown as Entry, { ...deps, identity: `${deps.identity} ${i}` }),
        ),
      };
    });
    return combine(kind, alternatives);
  };
}

/** What an entry refuses is told with its place. */
function createAt(where: string, kind: string, create: () => CompiledPolicy): CompiledPolicy {
  try {
    return create();
  } catch (error) {
    const text = messageOf(error);
    throw new Error(text.startsWith(`${kind}.`) ? where + text.slice(kind.length) : `${where}: ${text}`, {
      cause: error,
    });
  }
}

function combine(kind: PolicyKind, alternatives: readonly Alternative[]): CompiledPolicy {
  /** What has been chosen for an exchange; undefined = nothing. */
  const chosen = new WeakMap<PolicyContext, CompiledPolicy | undefined>();
  const answers = alternatives.some(({ policy }) => policy.onResponse !== undefined);
  const conditions = alternatives.map(({ condition }) => condition).filter((each) => each !== undefined);
  const onRequest = (context: PolicyContext): RequestOutcome => {
    const policy = choose(kind, alternatives, context, refuse);
    if (answers) chosen.set(context, policy);
    return policy?.onRequest?.(context);
  };
  return {
    kind,
    onRequest: (GATES.has(kind) ? afterWholeBody : afterRequestBody)(conditions, onRequest),
    ...(answers && {
      onResponse(context, response) {
        // A request that was refused before its turn came is answered by the same rules.
        const policy = chosen.has(context) ? chosen.get(context) : choose(kind, alternatives, context, skip);
        return policy?.onResponse?.(context, response);
      },
      upstreamOnly: alternatives.every(({ policy }) => policy.onResponse === undefined || policy.upstreamOnly === true),
    }),
  };
}

function refuse(error: CelError): never {
  throw new GatewayError("TG_INVALID_REQUEST", undefined, error);
}

/** A response is there already, and the request was refused. */
function skip(): boolean {
  return false;
}

function choose(
  kind: PolicyKind,
  alternatives: readonly Alternative[],
  { variables, trace }: PolicyContext,
  whenFailed: WhenFailed,
): CompiledPolicy | undefined {
  const failed: WhenFailed = (error) => {
    trace?.applied(kind, { result: "failed", error: `condition failed: ${error.what}` });
    return whenFailed(error);
  };
  for (const { condition, policy } of alternatives) {
    if (condition === undefined) {
      trace?.applied(kind, "fallback met, applying policy");
      return policy;
    }
    if (condition.matches(variables, failed)) {
      trace?.applied(kind, "condition met, applying policy");
      return policy;
    }
    trace?.skipped(kind, "condition not met, skipping policy");
  }
  return undefined;
}
