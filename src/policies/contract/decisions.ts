/**
 * What policies decide: a value where it is decided, a text where somebody reads it. Each policy declares its decisions as a union
 * by `code`, with a table of their texts, which the compiler requires to be complete. Traces, the tree of steps and the access log
 * show the same texts. They are made only if a trace or a log shows them.
 */
import { type ErrorAnswer, type ErrorCode, GatewayError, type Why } from "../../base/errors.ts";
import type { PolicyEventKind } from "../../trace/policy-kinds.ts";

/** One decision: its code, and the values that its text needs. */
export interface Decision {
  readonly code: string;
}

/**
 * What a decision means for the request. `applied`: it continues, or the policy responds as configured; `rejected`: it ends here;
 * `failed`: it continues in spite of a failure; `skipped`: the policy had nothing to do; `unable`: it could do nothing, because what
 * it works on is missing or wrong.
 */
export type Effect = "applied" | "rejected" | "failed" | "skipped" | "unable";

/** A decision as people and programs read it. */
export interface Told {
  readonly effect: Effect;
  /** What was decided and why, without the name of the policy. Values of the request may stand in it: secrets are redacted later. */
  readonly text: string;
  /** The same for programs that read traces; absent if the text is all. */
  readonly data?: unknown;
}

/** The members of a union that can have this code. */
export type WithCode<All extends Decision, Code> = All extends Decision
  ? Code extends All["code"]
    ? All & { readonly code: Code }
    : never
  : never;

/** One text for each code. */
export type Texts<All extends Decision> = {
  readonly [Code in All["code"]]: (decision: WithCode<All, Code>) => Told;
};

/** Where decisions are reported. */
export interface DecisionTrace {
  /** Emits `policy` with the text of the decision; `before` and `after` become its snapshot. */
  report<All extends Decision>(decisions: Decisions<All>, decision: All, before?: unknown, after?: unknown): void;
}

/** The decisions of one policy with their texts. `kind` is its name in traces. */
export class Decisions<All extends Decision> {
  readonly kind: PolicyEventKind;
  readonly #texts: Readonly<Record<string, (decision: never) => Told>>;

  constructor(kind: PolicyEventKind, texts: Texts<All>) {
    this.kind = kind;
    this.#texts = texts;
  }

  tell(decision: All): Told {
    // The table has a text for each code of the union, which the compiler cannot follow through an index.
    return (this.#texts[decision.code] as (decision: All) => Told)(decision);
  }

  /** Reports that the request ends here, and makes the error, which the access log explains by the same text. */
  reject(
    trace: DecisionTrace | undefined,
    decision: All,
    code: ErrorCode,
    { cause, ...answer }: Partial<Omit<ErrorAnswer, "code">> & { readonly cause?: unknown } = {},
  ): GatewayError {
    trace?.report(this, decision);
    const why: Why = (shown) => ({ text: String(shown.input([], this.tell(decision).text)) });
    return new GatewayError(code, undefined, cause, { ...answer, why });
  }
}

type Telling = (text: string, data?: unknown) => Told;
const telling =
  (effect: Effect): Telling =>
  (text, data) => ({ effect, text, data });

export const applied = telling("applied");
export const rejected = telling("rejected");
export const failed = telling("failed");
export const skipped = telling("skipped");
export const unable = telling("unable");
