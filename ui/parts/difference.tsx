import type { VNode } from "preact";
import type { DifferenceHunk } from "../../src/admin/plane/config-difference.ts";

const TONES = { "-": "bad", "+": "good", " ": "" } as const;

/** Changes of files, with the numbers of their lines. */
export function Difference({ hunks }: { readonly hunks: readonly DifferenceHunk[] }): VNode {
  return (
    <pre class="difference mono" tabIndex={0}>
      {hunks.map(({ file, before, after, lines }) => (
        <>
          <span class="quiet">
            @@ {file} line {before}, now {after} @@{"\n"}
          </span>
          {lines.map(({ sign, text }, index) => (
            <span key={index} class={TONES[sign]}>
              {sign} {text}
              {"\n"}
            </span>
          ))}
        </>
      ))}
    </pre>
  );
}
