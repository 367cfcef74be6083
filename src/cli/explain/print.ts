import { isDeepStrictEqual } from "node:util";
import { redactTarget, SECRET_PARAMETERS } from "../../base/redaction.ts";
import type { RequestRecord } from "../../recorder/records.ts";
import { givenText } from "../../rehearsal/assumptions.ts";
import type { ExplainedOutcome, Explanation } from "../../rehearsal/explanation.ts";
import { factsOfRequest, type WrittenRequest } from "../../rehearsal/facts.ts";
import type { StepLine } from "../../report/step-lines.ts";
import type { Step } from "../../trace/steps.ts";
import { type Context, writeJson } from "../runner/context.ts";

/** Prints what would happen to a request, as a tree for each outcome or as JSON. Resolves with the exit code: 1 if every outcome refuses. */
export async function printExplanation(
  explanation: Explanation,
  request: WrittenRequest,
  json: boolean,
  context: Context,
): Promise<number> {
  const { method, target, url } = factsOfRequest(request);
  const title = target === "" ? url.href : `${method} ${redactTarget(target, SECRET_PARAMETERS)}`;
  const [passed, refused] = url.protocol === "udp:" ? ["forwarded", "dropped"] : ["connected", "refused"];
  await print(explanation, { title, passed, refused, about: [] }, json, context);
  return explanation.outcomes.every((outcome) => outcome.refused) ? 1 : 0;
}

/** Prints what happened to the request, connection or session of a record. `pod`: where it was. */
export async function printRecorded(
  explanation: Explanation & { readonly record: RequestRecord; readonly pod?: string },
  json: boolean,
  context: Context,
): Promise<void> {
  const { record, generation, alike = 1, pod } = explanation;
  const { kind = "request", method = kind, host = "", path, time, id, traceId, worker, number } = record;
  const facts = [
    `at ${time}`,
    `record ${worker}-${number}`,
    ...(pod === undefined ? [] : [`pod ${pod}`]),
    ...(id === undefined ? [] : [`id ${id}`]),
    ...(traceId === undefined ? [] : [`trace ${traceId}`]),
  ];
  const about = [
    facts.join(" · "),
    ...(record.generation === generation
      ? []
      : [`configuration ${record.generation} was in effect then, now it is ${generation}`]),
    ...(alike > 1 ? [`${alike} records have this id; this is the newest, and tgctl recent --id lists all`] : []),
  ];
  const title = `${method} ${host}${path}`.trimEnd();
  await print(explanation, { title, passed: "ended", refused: "no response", about }, json, context);
}

/** What the first lines of an outcome say. */
interface Heading {
  readonly title: string;
  /** What stands for the status if there is none. */
  readonly passed: string;
  readonly refused: string;
  /** Further lines. */
  readonly about: readonly string[];
}

async function print(explanation: Explanation, heading: Heading, json: boolean, context: Context): Promise<void> {
  if (json) return await writeJson(context, explanation);
  const { writeLines } = await import("../runner/screen.ts");
  await writeLines(context, await linesOfExplanation(explanation, heading));
}

/** The trees of the outcomes, one below the other; each without the first steps that it shares with the previous one. */
async function linesOfExplanation(
  { outcomes, omitted = 0 }: Explanation,
  { title, passed, refused, about }: Heading,
): Promise<StepLine[]> {
  const { linesOf, titleOf } = await import("../../report/step-lines.ts");
  const lines = outcomes.flatMap((outcome, i): StepLine[] => {
    const { steps, status } = outcome;
    const result = status ?? (outcome.refused ? refused : passed);
    const common = commonSteps(steps, outcomes[i - 1]?.steps ?? []);
    const last = steps[common - 1];
    return [
      ...[...headOf(outcome, `${title} → ${result}`), ...about].map((text) => ({ depth: 0, text })),
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
