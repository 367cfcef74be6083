import type { VNode } from "preact";
import type { ExplainedOutcome } from "../../src/rehearsal/explanation.ts";
import { givenText } from "../../src/report/given-text.ts";
import { shareText } from "../../src/report/recorded.ts";
import { valueText } from "../explain-question.ts";
import { lackText } from "../lack-text.ts";
import { StepTree } from "./step-tree.tsx";

interface OutcomeProps {
  readonly outcome: ExplainedOutcome;
  readonly before: ExplainedOutcome | undefined;
}

const FACTS = ["listener", "route", "endpoint", "error"] as const;

/** One thing that can happen. What is otherwise than in the outcome before is marked. */
export function Outcome({ outcome, before }: OutcomeProps): VNode {
  const { given, share, status, refused, needs = [], steps } = outcome;
  const assumed = Object.entries(given).map(([name, value]) => givenText(name, valueText(value)));
  const lacks = [...new Set(needs.map(lackText))];
  const differs = (key: (typeof FACTS)[number] | "status"): string =>
    before !== undefined && before[key] !== outcome[key] ? "differs" : "";
  return (
    <article>
      <h2>
        <strong class={`${refused ? "bad" : "good"} ${differs("status")}`}>
          {status ?? (refused ? "refused" : "passes")}
        </strong>
        {share === 1 ? "" : ` · ${shareText(share)} of requests`}
      </h2>
      {assumed.length === 0 ? null : <p class="mono">if {assumed.join(", ")}</p>}
      <dl class="facts">
        {FACTS.map((key) =>
          outcome[key] === undefined ? null : (
            <>
              <dt>{key}</dt>
              <dd class={differs(key)}>{outcome[key]}</dd>
            </>
          ),
        )}
      </dl>
      {lacks.length === 0 ? null : (
        <details>
          <summary class="quiet">{lacks.length === 1 ? "1 fact is" : `${lacks.length} facts are`} not known</summary>
          <ul class="mono">
            {lacks.map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </details>
      )}
      <StepTree steps={steps} before={before?.steps} />
    </article>
  );
}
