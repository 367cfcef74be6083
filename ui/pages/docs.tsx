import type { VNode } from "preact";
import type { PageProps } from "../page.ts";
import { DocLinks, useContents } from "../parts/doc-links.tsx";
import { Document } from "../parts/document.tsx";
import { Problem } from "../parts/problem.tsx";

/** One page of the project's documentation. */
export function Doc({ rest: name }: PageProps): VNode {
  return <Document name={name} />;
}

/** All pages of the project's documentation. */
export function Docs(): VNode {
  const { answer, problem } = useContents();
  return (
    <>
      <h1 aria-busy={answer === undefined}>Documentation</h1>
      <Problem problem={problem} />
      <DocLinks contents={answer} />
    </>
  );
}
