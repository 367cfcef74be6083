import type { VNode } from "preact";
import type { Contents } from "../documents.ts";
import { Document, useContents } from "../parts/document.tsx";
import { Problem } from "../parts/problem.tsx";
import { hashOf } from "../place.ts";
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

/** Links to all pages of the documentation. */
export function DocLinks({ contents }: { readonly contents: Contents | undefined }): VNode {
  return (
    <ul class="titles">
      {contents?.documents.map(({ name, title }) => (
        <li key={name}>
          <a href={hashOf(name === "policies" ? "/policies" : `/docs/${name}`)}>{title}</a>
        </li>
      ))}
    </ul>
  );
}
