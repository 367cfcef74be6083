import { redactTarget, SECRET_PARAMETERS } from "../../base/redaction.ts";
import { givenText } from "../../rehearsal/assumptions.ts";
import type { ExplainedOutcome, Explanation } from "../../rehearsal/explanation.ts";
import { factsOfRequest, type WrittenRequest } from "../../rehearsal/facts.ts";
import { type Context, write, writeJson } from "../runner/context.ts";

/** Prints an explanation, as a tree for each outcome or as JSON. Resolves with the exit code: 1 if every outcome refuses. */
export async function printExplanation(
  explanation: Explanation,
  request: WrittenRequest,
  json: boolean,
  context: Context,
): Promise<number> {
  const { outcomes, omitted = 0 } = explanation;
  if (json) await writeJson(context, explanation);
  else {
    const { stepLines } = await import("../../report/step-lines.ts");
    const { method, target, url } = factsOfRequest(request);
    const title = target === "" ? url.href : `${method} ${redactTarget(target, SECRET_PARAMETERS)}`;
    const [passed, refused] = url.protocol === "udp:" ? ["forwarded", "dropped"] : ["connected", "refused"];
    const texts = outcomes.map((outcome) => {
      const result = outcome.status ?? (outcome.refused ? refused : passed);
      return [...titleOf(outcome, `${title} → ${result}`), ...stepLines(outcome.steps)];
    });
    const total = outcomes.length + omitted;
    if (omitted > 0)
      texts.push([
        `${outcomes.length} of at least ${total} outcomes shown; to see the others, assume some of what these were given`,
      ]);
    await write(context.stdout, texts.map((lines) => `${lines.join("\n")}\n`).join("\n"));
  }
  return outcomes.every(({ refused }) => refused) ? 1 : 0;
}

/** What it was given, if anything, and the summary. */
function titleOf({ given, share, needs = [], route, endpoint, error }: ExplainedOutcome, result: string): string[] {
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
