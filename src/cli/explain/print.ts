import { isDeepStrictEqual } from "node:util";
import { redactTarget, SECRET_PARAMETERS } from "../../base/redaction.ts";
import { givenText } from "../../rehearsal/assumptions.ts";
import type { ExplainedOutcome, Explanation } from "../../rehearsal/explanation.ts";
import { factsOfRequest, type WrittenRequest } from "../../rehearsal/facts.ts";
import type { StepLine } from "../../report/step-lines.ts";
import type { Step } from "../../trace/steps.ts";
import { type Context, writeJson } from "../runner/context.ts";

/** Prints an explanation, as a tree for each outcome or as JSON. Resolves with the exit code: 1 if every outcome refuses. */
export async function printExplanation(
  explanation: Explanation,
  request: WrittenRequest,
  json: boolean,
  context: Context,
): Promise<number> {
  if (json) await writeJson(context, explanation);
  else {
    const { writeLines } = await import("../runner/screen.ts");
    await writeLines(context, await linesOfExplanation(explanation, request));
  }
  return explanation.outcomes.every(({ refused }) => refused) ? 1 : 0;
}

/** The trees of the outcomes, one below the other; each without the first steps that it shares with the previous one. */
async function linesOfExplanation(
  { outcomes, omitted = 0 }: Explanation,
  request: WrittenRequest,
): Promise<StepLine[]> {
  const { linesOf, titleOf } = await import("../../report/step-lines.ts");
  const { method, target, url } = factsOfRequest(request);
  const title = target === "" ? url.href : `${method} ${redactTarget(target, SECRET_PARAMETERS)}`;
  const [passed, refused] = url.protocol === "udp:" ? ["forwarded", "dropped"] : ["connected", "refused"];
  const lines = outcomes.flatMap((outcome, i): StepLine[] => {
    const { steps, status } = outcome;
    const result = status ?? (outcome.refused ? refused : passed);
    const common = commonSteps(steps, outcomes[i - 1]?.steps ?? []);
    const last = steps[common - 1];
    return [
      ...headOf(outcome, `${title} → ${result}`).map((text) => ({ depth: 0, text })),
      ...(last === undefined
        ? []
        : [{ depth: 0, result: "skipped", text: `as above, up to ${titleOf(last)}` } as const]),
      ...linesOf(steps.slice(common)),
      { depth: 0, text: "" },
    ];
  });
  if (omitted === 0) return lines.slice(0, -1);
  const total = outcomes.length + omitted;
  const text = `${outcomes.length} of at least ${total} outcomes shown; to see the others, assume some of what these were given`;
  return [...lines, { depth: 0, text }];
}

/** How many first steps are the same; 0 if these are a single line, which another line would only replace. */
function commonSteps(steps: readonly Step[], before: readonly Step[]): number {
  const first = steps.findIndex((step, i) => !isDeepStrictEqual(step, before[i]));
  const count = first < 0 ? steps.length : first;
  return count === 1 && steps[0]?.steps.length === 0 ? 0 : count;
}

/** What it was given, if anything, and the summary. */
function headOf({ given, share, needs = [], route, endpoint, error }: ExplainedOutcome, result: string): string[] {
  const parts = [
    result,
    ...(route === undefined ? [] : [`route ${route}`]),
    ...(endpoint === undefined ? [] : [`endpoint ${endpoint}`]),
    ...(error === undefined ? [] : [error]),
  ];
  const assumed = Object.entries(given).map(([name, value]) => givenText(name, value));
  const percent = share === 1 ? "" : ` (${Number((share * 100).toFixed(2))} % of requests)`;
  return [
    ...(assumed.length === 0 ? [] : [`if ${assumed.join(", ")}${percent}:`]),
    parts.join(" · "),
    ...new Set(needs.map(({ what, supply }) => `not known: ${what}; ${supply}`)),
  ];
}
