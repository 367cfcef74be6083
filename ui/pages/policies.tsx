import type { VNode } from "preact";
import { counted } from "../../src/base/counted.ts";
import { useAnswer } from "../answer.ts";
import type { PageProps } from "../page.ts";
import { Document } from "../parts/document.tsx";
import { Problem } from "../parts/problem.tsx";
import { hashOf } from "../place.ts";

/** All kinds of policies, and the order in which they run. */
export function Policies(): VNode {
  return <Document name="policies" />;
}

/** One kind of policy: where it is in use, its fields, and an example. */
export function Policy({ rest: kind }: PageProps): VNode {
  return (
    <Document name={`policies/${kind}`}>
      <InUse kind={kind} />
    </Document>
  );
}

/** Parts of the configuration that are listed. */
const LIMIT = 20;

/** Links to the parts of the configuration where a policy of this kind is in effect. */
function InUse({ kind }: { readonly kind: string }): VNode {
  const { answer, problem } = useAnswer("/config/parts", { query: { policy: kind, limit: LIMIT } }, kind);
  if (answer === undefined) return <Problem problem={problem} />;
  const { parts, found } = answer;
  if (found === 0) return <p>Not in use here.</p>;
  return (
    <>
      <h2>In use at {counted(found, "place")}</h2>
      <ul>
        {parts.map((part) => (
          <li key={part.key}>
            {part.kind} <a href={hashOf("/config", { policy: kind, at: part.key })}>{part.name}</a>
          </li>
        ))}
      </ul>
      {parts.length < found ? (
        <p>
          <a href={hashOf("/config", { policy: kind })}>all {found}</a>
        </p>
      ) : null}
    </>
  );
}
