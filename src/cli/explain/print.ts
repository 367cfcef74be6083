import { isDeepStrictEqual } from "node:util";
import { redactTarget, SECRET_PARAMETERS } from "../../base/redaction.ts";
import type { RequestRecord } from "../../recorder/records.ts";
import { textOf } from "../../rehearsal/assumptions.ts";
import type { ExplainedOutcome, Explanation } from "../../rehearsal/explanation.ts";
import { factsOfRequest, type WrittenRequest } from "../../rehearsal/facts.ts";
import { givenText } from "../../report/given-text.ts";
import type { StepLine } from "../../report/step-lines.ts";
import { lackText } from "../../report/supply-text.ts";
import type { Step } from "../../trace/steps.ts";
import { type Context, writeJson } from "../runner/context.ts";

/** Prints what would happen to a request, as a tree for each outcome or as JSON. Resolves with the exit code: 1 if every outcome refuses. */
export async function printExplanation(
  explanation: Explanation,
  request: WrittenRequest,
  json: boolean,
  context: Context,
): Promise<number> {
  await print(explanation, () => linesOfExplanation(explanation, request), json, context);
  return explanation.outcomes.every(({ refused }) => refused) ? 1 : 0;
}

/** The explanation of a request, connection or session that is over. */
type RecordedExplanation = Explanation & { readonly record: RequestRecord };

/** Prints what happened, as a tree or as JSON. */
export async function printRecorded(explanation: RecordedExplanation, json: boolean, context: Context): Promise<void> {
  await print(explanation, () => linesOfRecorded(explanation), json, context);
}

async function print(
  explanation: Explanation,
  lines: () => Promise<StepLine[]>,
  json: boolean,
  context: Context,
): Promise<void> {
  if (json) return await writeJson(context, explanation);
  const { writeLines } = await import("../runner/screen.ts");
  await writeLines(context, await lines());
}

async function linesOfRecorded(explanation: RecordedExplanation): Promise<StepLine[]> {
  const { linesOf } = await import("../../report/step-lines.ts");
  const { record, generation, alike = 1, outcomes, omitted = 0 } = explanation;
  const { kind = "request", method = kind, host = "", path, time, id, traceId, worker, number, pod } = record;
  const facts = [
    `at ${time}`,
    `record ${worker}-${number}`,
    ...(pod === undefined ? [] : [`pod ${pod}`]),
    ...(id === undefined ? [] : [`id ${id}`]),
    ...(traceId === undefined ? [] : [`trace ${traceId}`]),
  ];
  const remarks = [
    ...(alike > 1 ? [`${alike} records have this id; this is the newest, and tgctl recent --id lists all`] : []),
    ...(record.generation === generation
      ? []
      : [
          `configuration ${record.generation} was in effect then; it is explained with ${generation}, which is in effect now`,
        ]),
    ...(omitted > 0
      ? ["what is not recorded leaves too many ways open; supply some of it to see which one it was"]
      : []),
  ];
  return outcomes.flatMap((outcome) => {
    const { given, status, refused } = outcome;
    const title = `${method} ${host}${path}`.trimEnd();
    const result = status ?? (refused ? "no response" : "ended");
    const follows = Object.entries(given).map(([name, value]) => givenText(name, textOf(value)));
    const head = [
      summaryOf(outcome, `${title} → ${result}`),
      facts.join(" · "),
      ...remarks,
      ...(follows.length === 0 ? [] : [`it follows that ${follows.join(", ")}`]),
      ...lackingOf(outcome),
    ];
    return [...head.map((text) => ({ depth: 0, text })), ...linesOf(outcome.steps)];
  });
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
    const head = [...conditionOf(outcome), summaryOf(outcome, `${title} → ${result}`), ...lackingOf(outcome)];
    return [
      ...head.map((text) => ({ depth: 0, text })),
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

/** What the outcome was given, if anything. */
function conditionOf({ given, share }: ExplainedOutcome): string[] {
  const assumed = Object.entries(given).map(([name, value]) => givenText(name, textOf(value)));
  const percent = share === 1 ? "" : ` (${Number((share * 100).toFixed(2))} % of requests)`;
  return assumed.length === 0 ? [] : [`if ${assumed.join(", ")}${percent}:`];
}

function summaryOf({ route, endpoint, error }: ExplainedOutcome, result: string): string {
  const parts = [
    result,
    ...(route === undefined ? [] : [`route ${route}`]),
    ...(endpoint === undefined ? [] : [`endpoint ${endpoint}`]),
    ...(error === undefined ? [] : [error]),
  ];
  return parts.join(" · ");
}

/** What is not known, and how to supply it. */
function lackingOf({ needs = [] }: ExplainedOutcome): string[] {
  return [...new Set(needs.map(lackText))];
}
