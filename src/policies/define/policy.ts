/**
 * The module of a kind of policy. Its folder has the schema of what users write (`schema.ts`, or a file of `schema/` that other kinds use too, which only the thread that loads
 * configurations imports) and one module made by `definePolicy` (`index.ts`): in which phases the kind runs, how levels combine,
 * what dumps and traces show of it, and how its configuration becomes hooks on requests and responses. `schemas.ts` lists the
 * schemas, `registry.ts` the modules, `order.ts` the order in which they run.
 */
import type { CelEnvironment } from "../../cel/index.ts";
import type { Phase } from "../../trace/events.ts";
import type { PolicyEventKind } from "../../trace/policy-kinds.ts";
import type { Decision, Decisions } from "../contract/decisions.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import { within } from "../contract/policy-error.ts";
import type { PolicyHooks } from "../contract/types.ts";
import type { CallPolicies } from "../schema/call.ts";
import type { Conditional } from "../schema/conditional.ts";
import { isConditional, prepareAlternatives } from "./conditional.ts";

/** Lower-case names of headers whose values are secrets. */
export type Hidden = ReadonlySet<string>;

/** Puts a prepared policy into a data plane. Called once per place where the policy is attached. */
export type Bind = (deps: PolicyDeps) => PolicyHooks;

/**
 * How a backend's policy applies to callouts to that backend, for example if it is an authorization service.
 * `apply`: the call gets it too. `warn`: it is left out with a warning, because users would expect it to guard
 * or redirect these calls as well. undefined: it is left out silently, since users would not expect it there.
 */
export type CallUse = "apply" | "warn" | undefined;

/**
 * What `calls` of a kind has to be: `apply` for the fields of `CallPolicies`, and only for them. A module that disagrees with
 * the schema does not compile in the registry.
 */
export type CallUseOf<Name extends string> = Name extends keyof CallPolicies
  ? { readonly calls?: "apply" }
  : { readonly calls?: Exclude<CallUse, "apply"> };

/** What translation, dumps and traces need of a kind; settings of connections have it too. */
export interface Kind<Name extends string, Config> {
  readonly kind: Name;
  /** Where the kind may run; its place among the others of a phase is in `order.ts`. */
  readonly phases: readonly Phase[];
  /** In the gateway phase, it applies to the connections of listeners without HTTP too. */
  readonly connections?: true;
  /** Key in `effectivePolicy` of traces. Default: the kind. */
  readonly traceKey?: string;
  /** Several policies for one target are merged. Default: a second one is reported as a mistake. */
  readonly repeatable?: boolean;
  /** The configuration for dumps: without secrets, with times as text. */
  redact(config: Config, hidden: Hidden): unknown;
  /** The same for `effectivePolicy` of traces. */
  traceView(config: Config, hidden: Hidden): unknown;
  /** Combines two levels, such as gateway and route. */
  merge(outer: Config, inner: Config): Config;
}

interface Traits<Name extends string>
  extends Pick<Kind<Name, unknown>, "kind" | "phases" | "connections" | "traceKey" | "repeatable"> {
  /** What the policy decides about a request, with the texts. */
  readonly decisions: Decisions<Decision>;
  /** Names the stage of a trace that follows the policy (docs/trace-events.md). Default: the kind in words, such as `url rewrite`. */
  readonly traceStage?: string;
  /** The same in the gateway phase, behind `gateway`. */
  readonly gatewayTraceStage?: string;
}

/** What the author of a kind writes. */
interface Definition<Name extends string, Config> extends Traits<Name> {
  /**
   * Does everything that can fail or is expensive, without a data plane: validating a configuration calls it too. `cel` includes the
   * functions that the configuration defines. Throws PolicyError, whose paths begin in `config`, or CelError.
   */
  readonly prepare: (config: Config, cel: CelEnvironment) => Bind;
  /**
   * The configuration for dumps: without secrets, with times as text. Required, so that a new kind cannot leak a secret by
   * omission.
   */
  readonly redact: (config: Config, hidden: Hidden) => unknown;
  /** The same for `effectivePolicy` of traces. Default: `redact`. */
  readonly traceView?: (config: Config, hidden: Hidden) => unknown;
  /** How two levels combine, such as gateway and route. Default: the inner one, which is nearer to the backend, replaces the outer. */
  readonly merge?: (outer: Config, inner: Config) => Config;
}

/** A kind of policy as the registry has it. `Config` includes lists of alternatives where the kind takes them. */
export interface Policy<Name extends string, Config> extends Traits<Name>, Kind<Name, Config> {
  /** As in the definition; paths of a PolicyError begin with the kind. */
  prepare(config: Config, cel: CelEnvironment): Bind;
}

/** What the registry compares with the schemas, and the golden file of decisions reads. */
interface Claims<Use extends CallUse, Decided extends Decisions<Decision>> {
  readonly decisions: Decided;
  readonly calls?: Use;
}

/** A kind that is configured by one value. `calls` keeps its literal type for the registry to compare. */
export function definePolicy<
  Name extends string,
  Config,
  Use extends CallUse = undefined,
  Decided extends Decisions<Decision> = Decisions<Decision>,
>(definition: Definition<Name, Config> & Claims<Use, Decided>): Policy<Name, Config> & Claims<Use, Decided> {
  return {
    ...definition,
    traceView: definition.traceView ?? definition.redact,
    merge: definition.merge ?? ((_outer, inner) => inner),
    prepare: (config, cel) => within([definition.kind], () => definition.prepare(config, cel)),
  };
}

/**
 * A kind that takes alternatives too, as in docs/policies/ext-authz.md#conditionalextauthz: the first whose condition is true
 * applies. An alternative is an `Entry`.
 */
export function defineConditionalPolicy<
  Name extends PolicyEventKind,
  Config,
  Entry extends object = Config & object,
  Use extends CallUse = undefined,
  Decided extends Decisions<Decision> = Decisions<Decision>,
>(
  definition: Definition<Name, Config | Entry> & Claims<Use, Decided>,
): Policy<Name, Config | Conditional<Entry>> & Claims<Use, Decided> {
  const { kind, merge: _single, redact, traceView = redact, ...traits } = definition;
  const show = (config: Config | Conditional<Entry>, hidden: Hidden): unknown =>
    isConditional<Entry>(config)
      ? { conditional: config.conditional.map((entry) => redact(entry, hidden)) }
      : redact(config, hidden);
  return definePolicy<Name, Config | Conditional<Entry>, Use, Decided>({
    ...traits,
    kind,
    prepare: (config, cel) =>
      isConditional<Entry>(config)
        ? prepareAlternatives(kind, config.conditional, definition.prepare, cel)
        : definition.prepare(config, cel),
    redact: show,
    traceView: (config, hidden) =>
      isConditional<Entry>(config)
        ? config.conditional.map((entry) => traceAlternative(entry.condition, traceView(entry, hidden)))
        : traceView(config, hidden),
  });
}

/** An alternative in `effectivePolicy`: its condition is shown beside the policy. */
function traceAlternative(condition: string | undefined, redacted: unknown): unknown {
  const { condition: _beside, ...pol } = Object(redacted) as Readonly<Record<string, unknown>>;
  return { pol, ...(condition !== undefined && { condition }) };
}
