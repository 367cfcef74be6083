import { type Activation, type CelEnvironment, type Expression, toJson } from "../../cel/index.ts";
import type { SamplingRules } from "../settings.ts";

/** Whether the client began the trace, or it is new. */
type Origin = "client" | "random";

/** Which requests leave spans (docs/telemetry.md#which-requests-are-sampled). */
export class Sampler {
  readonly #rules: Readonly<Record<Origin, Rule>>;
  readonly #random: () => number;

  /** `random` is uniform in [0, 1). Throws CelError for an expression that cannot be used. */
  constructor({ clientSampling, randomSampling }: SamplingRules, random: () => number, cel: CelEnvironment) {
    this.#rules = { client: compile(clientSampling ?? true, cel), random: compile(randomSampling ?? false, cel) };
    this.#random = random;
  }

  /** An expression that fails, or returns anything but a boolean or a number, samples nothing. */
  wants(origin: Origin, variables: () => Activation): boolean {
    const rule = this.#rules[origin];
    const share = typeof rule === "number" ? rule : evaluate(rule, variables());
    return share >= 1 || (share > 0 && this.#random() < share);
  }
}

/** A share of the requests from 0 to 1, or an expression that yields it. */
type Rule = number | Expression;

function compile(rule: boolean | number | string, cel: CelEnvironment): Rule {
  return typeof rule === "string" ? cel.compileExpression(rule, "request") : Number(rule);
}

function evaluate(expression: Expression, variables: Activation): number {
  try {
    const value = toJson(expression.evaluate(variables));
    return typeof value === "boolean" || typeof value === "number" ? Number(value) : 0;
  } catch {
    return 0;
  }
}
