import type { VNode } from "preact";
import type { AskError } from "../ask.ts";

/** Why there is no answer; null while there is one. */
export function Problem({ problem }: { readonly problem: AskError | undefined }): VNode | null {
  if (problem === undefined) return null;
  return (
    <p class="problem" role="alert">
      {problem.message}
      {problem.passes ? "\nTrying again." : ""}
    </p>
  );
}
