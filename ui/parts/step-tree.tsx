import type { VNode } from "preact";
import { linesOf, SIGNS, type StepLine } from "../../src/report/step-lines.ts";
import type { Step } from "../../src/trace/steps.ts";

const TONES = { yes: "good", no: "bad", unknown: "warn", skipped: "quiet", notReached: "quiet" } as const;
/** Levels that step-tree.css indents; deeper ones are not indented further. */
const DEEPEST = 4;

/** What a request went through, step by step, with values and places. */
export function StepTree({ steps }: { readonly steps: readonly Step[] }): VNode {
  return (
    <ul class="tree">
      {linesOf(steps).map((line, index) => (
        <Line key={index} line={line} />
      ))}
    </ul>
  );
}

function Line({ line: { depth, result, text, place } }: { readonly line: StepLine }): VNode {
  return (
    <li class={`depth${Math.min(depth, DEEPEST)}`}>
      <span class={`sign ${result === undefined ? "" : TONES[result]}`}>
        {result === undefined ? "" : SIGNS[result]}
      </span>
      <span>
        {text}
        {place === undefined ? null : <span class="quiet"> {place}</span>}
      </span>
    </li>
  );
}
