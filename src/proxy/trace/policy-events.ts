/** The trace events of policies, redacted. */
import type { Decision, Decisions, Effect } from "../../policies/contract/decisions.ts";
import type {
  AuthorizationRuleResult,
  OutboundTrace,
  PolicyTrace,
  ShadowDecision,
} from "../../policies/contract/types.ts";
import { clipped } from "../../trace/details.ts";
import type { Severity } from "../../trace/events.ts";
import type { RequestSecrets } from "../../trace/secrets.ts";
import { severityOf, type TraceSink } from "../../trace/tracer.ts";

const SEVERITIES: Readonly<Record<Effect, Severity>> = {
  applied: "info",
  rejected: "error",
  failed: "warn",
  skipped: "info",
  unable: "warn",
};

/**
 * The trace events of policies: those of the request, or those of a callout, whose events carry its scope. Every value passes
 * through `RequestSecrets`, so that a policy cannot reveal a credential by mistake.
 */
export class PolicyEvents implements PolicyTrace {
  readonly #tracer: TraceSink;
  readonly #scope: readonly string[];
  readonly #secrets: RequestSecrets;

  /** `scope`: the callouts that the events belong to, outermost first. */
  constructor(tracer: TraceSink, scope: readonly string[], secrets: RequestSecrets) {
    this.#tracer = tracer;
    this.#scope = scope;
    this.#secrets = secrets;
  }

  report<All extends Decision>(decisions: Decisions<All>, decision: All, before?: unknown, after?: unknown): void {
    const { effect, text: own, data } = decisions.tell(decision);
    const text = clipped(this.#secrets.details(own) as string);
    const { kind } = decisions;
    const severity = SEVERITIES[effect];
    if (effect === "skipped" || effect === "unable") {
      this.#tracer.emit(severity, { type: "policy", kind, result: { type: "skip", reason: text } }, null, this.#scope);
      return;
    }
    const details = { details: text, ...(data !== undefined && { data: this.#secrets.details(data) }) };
    const snapshot =
      before === undefined && after === undefined
        ? null
        : { before: this.#secrets.details(before), after: this.#secrets.details(after) };
    const message = { type: "policy", kind, result: { type: "apply", ...details, snapshot } } as const;
    this.#tracer.emit(severity, message, null, this.#scope);
  }

  /** A rule that failed is shown as an error even if the request is allowed, because it counted as false. */
  authorization(rules: readonly AuthorizationRuleResult[], result: "allow" | "deny"): void {
    const failed = rules.some(({ error }) => error !== undefined);
    const severity = result === "allow" && !failed ? "success" : "error";
    const redacted = rules.map(({ name, mode, matched, error, ...observed }) => ({
      name,
      mode,
      matched,
      ...(error !== undefined && { error: String(this.#secrets.details(error)) }),
      ...this.#secrets.observed({ ...observed, whole: undefined }),
    }));
    this.#tracer.emit(severity, { type: "authorizationResult", rules: redacted, result }, null, this.#scope);
  }

  hide(place: "header" | "query parameter", name: string): void {
    this.#secrets.hide(place, name);
  }

  outbound(scope: string): OutboundTrace {
    const tracer = this.#tracer;
    const scopes = [...this.#scope, scope];
    let start = tracer.now();
    return {
      started(target) {
        start = tracer.now();
        tracer.emit("info", { type: "backendCallStart", target }, null, scopes);
      },
      ended(status, error) {
        tracer.emit(severityOf(status, error), { type: "backendCallResult", status, error }, start, scopes);
      },
    };
  }

  within(scope: string): PolicyTrace {
    return new PolicyEvents(this.#tracer, [...this.#scope, scope], this.#secrets);
  }

  ofShadow(): PolicyTrace {
    return new PolicyEvents(withoutErrors(this.#tracer), [...this.#scope, "shadow"], this.#secrets);
  }

  shadow({ kind, phase, verdict, status, code, reason }: ShadowDecision): void {
    const message = { type: "shadowDecision", policy: kind, phase, decision: verdict, status, code, reason } as const;
    this.#tracer.emit(verdict === "allow" ? "info" : "warn", message, null, this.#scope);
  }
}

/** What a shadow policy denies is no error of the request. */
function withoutErrors(tracer: TraceSink): TraceSink {
  return {
    options: tracer.options,
    snapshots: false,
    now: () => tracer.now(),
    evaluated: (result) => tracer.evaluated(result),
    emit: (severity, ...event) => tracer.emit(severity === "error" ? "warn" : severity, ...event),
    finish() {},
  };
}
