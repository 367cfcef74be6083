import type { ComponentChildren, VNode } from "preact";
import { useEffect } from "preact/hooks";
import { useOnce } from "../answer.ts";
import { AskError, askFile } from "../ask.ts";
import { type Block, type Document as Content, fileOf, type Inline, isDocument } from "../documents.ts";
import { place } from "../place.ts";
import { Problem } from "./problem.tsx";

/** Gets a page of docs/. */
function useDocument(name: string): ReturnType<typeof useOnce<Content>> {
  return useOnce(name, (signal) => readDocument(name, isDocument, signal));
}

/** A file of the documentation. Throws AskError, also if it does not exist. */
export async function readDocument<T>(
  name: string,
  isExpected: (value: unknown) => value is T,
  signal: AbortSignal,
): Promise<T> {
  const version = document.querySelector<HTMLMetaElement>("meta[name=documents]")?.content ?? "";
  const found = await askFile(fileOf(name, version), isExpected, signal);
  if (found === undefined) throw new AskError(`There is no page ${name} in the documentation of this version.`, false);
  return found;
}

/** A page of docs/. `children` are shown after its title and first paragraph. */
export function Document({ name, children }: { readonly name: string; children?: ComponentChildren }): VNode {
  const { answer, problem } = useDocument(name);
  const at = place.value.query.get("at");
  useEffect(() => {
    if (answer !== undefined && at !== null) document.getElementById(at)?.scrollIntoView();
  }, [answer, at]);
  if (problem !== undefined) return <Problem problem={problem} />;
  const [title, summary, ...others] = (answer?.blocks ?? []).map((block, index) => <Part key={index} block={block} />);
  return (
    <article class="document" aria-busy={answer === undefined}>
      {title}
      {summary}
      {children}
      {others}
    </article>
  );
}

function Part({ block }: { readonly block: Block }): VNode {
  if ("paragraph" in block) return <p>{texts(block.paragraph)}</p>;
  if ("code" in block)
    return (
      <pre class="mono" tabIndex={0}>
        {block.code}
      </pre>
    );
  if ("table" in block) return <Table rows={block.table} />;
  if ("list" in block) {
    const items = block.list.map((item, index) => <li key={index}>{texts(item)}</li>);
    return block.ordered ? <ol>{items}</ol> : <ul>{items}</ul>;
  }
  if (block.heading === 1) return <h1>{texts(block.text)}</h1>;
  return block.heading === 2 ? <h2 id={block.id}>{texts(block.text)}</h2> : <h3 id={block.id}>{texts(block.text)}</h3>;
}

function Table({ rows: [head = [], ...rows] }: { readonly rows: readonly (readonly (readonly Inline[])[])[] }): VNode {
  return (
    <div class="scroll" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {head.map((cell, index) => (cell.length === 0 ? <td key={index} /> : <th key={index}>{texts(cell)}</th>))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, at) => (
                <td key={at}>{texts(cell)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function texts(inlines: readonly Inline[]): ComponentChildren {
  return inlines.map((inline, index) => {
    if (typeof inline === "string") return inline;
    if ("code" in inline) return <code key={index}>{inline.code}</code>;
    if ("strong" in inline) return <strong key={index}>{texts(inline.strong)}</strong>;
    if ("em" in inline) return <em key={index}>{texts(inline.em)}</em>;
    return (
      <a key={index} href={inline.link}>
        {texts(inline.text)}
      </a>
    );
  });
}
