import type { ComponentChildren, VNode } from "preact";
import type { AskError } from "../ask.ts";
import { Problem } from "./problem.tsx";

interface LabeledProps {
  readonly name: string;
  /** It takes the room that others leave. */
  readonly wide?: boolean;
  /** What is wrong with the field, for which `problemId` stands in its `aria-describedby`. */
  readonly problem?: AskError | undefined;
  readonly problemId?: string;
  readonly children: ComponentChildren;
}

/** A field of a form below its name. */
export function Labeled({ name, wide = false, problem, problemId, children }: LabeledProps): VNode {
  return (
    <div class={wide ? "labeled grows" : "labeled"}>
      {/* biome-ignore lint/a11y/noLabelWithoutControl: the control is the child */}
      <label>
        <span class="quiet">{name}</span>
        {children}
      </label>
      {problem === undefined ? null : (
        <div id={problemId}>
          <Problem problem={problem} />
        </div>
      )}
    </div>
  );
}
