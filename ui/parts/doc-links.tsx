import type { VNode } from "preact";
import { useOnce } from "../answer.ts";
import { CONTENTS, type Contents, isContents } from "../documents.ts";
import { hashOf } from "../place.ts";
import { readDocument } from "./document.tsx";

/** Gets the list of all pages. */
export function useContents(): ReturnType<typeof useOnce<Contents>> {
  return useOnce(CONTENTS, (signal) => readDocument(CONTENTS, isContents, signal));
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
