import assert from "node:assert/strict";
import { test } from "node:test";
import { CONTENTS, type Contents, type Document, fileOf, type Inline } from "../../ui/documents.ts";
import { webDocuments } from "./web-documents.ts";

const { version, files } = webDocuments();
const byName = new Map(files);

function read<T>(name: string): T {
  return JSON.parse(byName.get(fileOf(name, version)) ?? "null");
}

/** The links in a text. */
function* linksIn(texts: readonly Inline[]): Generator<string> {
  for (const text of texts) {
    if (typeof text === "string" || "code" in text) continue;
    if ("link" in text) yield text.link;
    yield* linksIn("text" in text ? text.text : "em" in text ? text.em : text.strong);
  }
}

function textsOf({ blocks }: Document): Inline[] {
  return blocks.flatMap((block) => {
    if ("code" in block) return [];
    if ("list" in block) return block.list.flat();
    if ("table" in block) return block.table.flat(2);
    return "heading" in block ? block.text : block.paragraph;
  });
}

test("each page is in one file under a name that changes with the content, and begins with its title", () => {
  const { documents } = read<Contents>(CONTENTS);
  assert.ok(documents.length > 20);
  assert.ok(!documents.some(({ name }) => name.startsWith("policies/")), "a list of policies is a page of its own");
  for (const { name, title } of documents) {
    const [first] = read<Document>(name).blocks;
    assert.deepEqual(first && "heading" in first && first.heading, 1, `${name}: ${title}`);
  }
  assert.equal(byName.size, files.length, "no two pages have one name");
  for (const [name] of files) assert.match(name, /^doc-[\w-]+-[\da-f]{12}\.json$/);
});

test("every link within the documents leads to a page, and to a heading on it", () => {
  const anchors = new Map(
    files.map(([file, content]) => {
      const { blocks = [] }: Partial<Document> = JSON.parse(content);
      return [file, new Set(blocks.flatMap((block) => ("heading" in block ? [block.id] : [])))];
    }),
  );
  const met = new Set<string>();
  for (const [file, content] of files) {
    const document: Partial<Document> = JSON.parse(content);
    for (const link of linksIn(textsOf({ blocks: document.blocks ?? [] }))) {
      if (/^https?:/.test(link)) continue;
      const [, name = "", at] = /^#\/(?:docs\/)?([^?]+)(?:\?at=(.*))?$/.exec(link) ?? [];
      const found = anchors.get(fileOf(name, version));
      assert.ok(found !== undefined, `${file}: ${link} leads to no page`);
      if (at !== undefined) assert.ok(found.has(decodeURIComponent(at)), `${file}: ${link} leads to no heading`);
      met.add(link);
    }
  }
  assert.ok(met.size > 100);
  assert.ok(met.has("#/policies"), "the list of policies");
});
