import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path/posix";
import { CONTENTS, type Contents, type Document, fileOf } from "../../ui/documents.ts";
import { readText, root } from "../lib/files.ts";
import { readMarkdown } from "../lib/markdown.ts";

export interface WebDocuments {
  /** Hash of all of them, which is part of their names. */
  readonly version: string;
  /** Name and content of each file. */
  readonly files: readonly (readonly [name: string, content: string])[];
}

/** A page of docs/. */
interface Source {
  /** As the view names it: `trace`; `policies/cors` for a policy, whose title is its kind. */
  readonly name: string;
  readonly title: string;
  readonly path: string;
  readonly text: string;
}

/** The pages of docs/ that users read, for the web view, which fetches each when it is opened. */
export function webDocuments(): WebDocuments {
  const sources = ["docs", "docs/policies"].flatMap(sourcesIn);
  const names = new Map(sources.map(({ path, name }) => [path, name]));
  const contents: Contents = {
    documents: sources
      .filter(({ name }) => !name.startsWith("policies/"))
      .map(({ name, title }) => ({ name, title }))
      .sort((a, b) => (a.title < b.title ? -1 : 1)),
  };
  const texts: (readonly [name: string, content: string])[] = [[CONTENTS, JSON.stringify(contents)]];
  for (const { name, path, text } of sources) {
    const document: Document = { blocks: readMarkdown(text, (target) => linkTo(target, path, names)) };
    texts.push([name, JSON.stringify(document)]);
  }
  const version = createHash("sha256").update(JSON.stringify(texts)).digest("hex").slice(0, 12);
  return { version, files: texts.map(([name, content]) => [fileOf(name, version), content]) };
}

function sourcesIn(folder: string): Source[] {
  return readdirSync(`${root}${folder}`)
    .filter((file) => file.endsWith(".md"))
    .sort()
    .map((file) => {
      const path = `${folder}/${file}`;
      const text = readText(path);
      const title = /^# (.*)$/m.exec(text)?.[1] ?? file;
      const name = folder === "docs" ? file.slice(0, -".md".length) : `policies/${title}`;
      return { name: file === "README.md" ? "policies" : name, title, path, text };
    });
}

/** Where a link of the page `from` leads in the view; undefined for files that it does not have. */
function linkTo(target: string, from: string, names: ReadonlyMap<string, string>): string | undefined {
  if (/^https?:/.test(target)) return target;
  const [file = "", anchor] = target.split("#");
  const name = names.get(file === "" ? from : join(dirname(from), file));
  if (name === undefined) return undefined;
  const place = name.startsWith("policies") ? `#/${name}` : `#/docs/${name}`;
  return anchor === undefined ? place : `${place}?at=${encodeURIComponent(anchor)}`;
}
