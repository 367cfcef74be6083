import type { VNode } from "preact";
import { CHANGING_FIELDS } from "../../src/rehearsal/changing-fields.ts";
import { linesOf, SIGNS, type StepLine } from "../../src/report/step-lines.ts";
import type { Step } from "../../src/trace/steps.ts";
import { OriginText } from "./origin.tsx";

const TONES = { yes: "good", no: "bad", unknown: "warn", skipped: "quiet", notReached: "quiet" } as const;
/** Levels that step-tree.css indents; deeper ones are not indented further. */
const DEEPEST = 4;

interface StepTreeProps {
  readonly steps: readonly Step[];
  /** The steps of another outcome: lines that it does not have are marked, other than fields whose values always change. */
  readonly before?: readonly Step[] | undefined;
}

/** What a request went through, step by step, with values and places. */
export function StepTree({ steps, before }: StepTreeProps): VNode {
  return <Tree lines={linesOf(steps)} before={before && linesOf(before)} />;
}

interface TreeProps {
  readonly lines: readonly StepLine[];
  /** As `before` of a `StepTree`. */
  readonly before?: readonly StepLine[] | undefined;
}

/** The lines of such a tree. */
export function Tree({ lines, before }: TreeProps): VNode {
  const known = before && new Set(before.map(keyOf));
  return (
    <ul class="tree">
      {lines.map((line, index) => (
        <Line key={index} line={line} differs={known?.has(keyOf(line)) === false} />
      ))}
    </ul>
  );
}

/** What a line says; the place may be in another file. */
function keyOf({ depth, result, text }: StepLine): string {
  const [field = ""] = text.split(": ");
  if (result === undefined && CHANGING_FIELDS.has(field)) return field;
  return JSON.stringify([depth, result, text]);
}

interface LineProps {
  readonly line: StepLine;
  readonly differs: boolean;
}

function Line({ line: { depth, result, text, place }, differs }: LineProps): VNode {
  return (
    <li class={`depth${Math.min(depth, DEEPEST)}${differs ? " differs" : ""}`}>
      <span class={`sign ${result === undefined ? "" : TONES[result]}`}>
        {result === undefined ? "" : SIGNS[result]}
      </span>
      <span>
        {text}
        {place === undefined ? null : (
          <>
            {" "}
            <OriginText text={place} />
          </>
        )}
      </span>
    </li>
  );
}
