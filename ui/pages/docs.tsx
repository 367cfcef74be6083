import type { VNode } from "preact";
import { DocLinks, useContents } from "../parts/doc-links.tsx";
import { Document } from "../parts/document.tsx";
import { Problem } from "../parts/problem.tsx";
import type { PageProps } from "./pages.ts";

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
