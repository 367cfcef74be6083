import assert from "node:assert/strict";
import { test } from "node:test";
import { readMarkdown } from "./markdown.ts";

const resolve = (target: string) => (target.startsWith("src/") ? undefined : `#/${target}`);

test("blocks: headings, paragraphs, lists, tables and code; comments are left out, pictures are their descriptions", () => {
  const text = `# One & *two*

A paragraph
of two lines.
- first
  goes on
- second
<!-- generated: \`x\`
-->
1. ordered

| A | |
|---|---|
| \`a \\| b\` | one<br>two |
\`\`\`yaml
# no heading
- no item
\`\`\`
<picture>
  <source srcset="dark.png">
  <img src="light.png" alt="what it shows">
</picture>
End`;
  assert.deepEqual(readMarkdown(text, resolve), [
    { heading: 1, id: "one--two", text: ["One & ", { em: ["two"] }] },
    { paragraph: ["A paragraph of two lines."] },
    { list: [["first goes on"], ["second"]], ordered: false },
    { list: [["ordered"]], ordered: true },
    {
      table: [
        [["A"], []],
        [[{ code: "a | b" }], ["one\ntwo"]],
      ],
    },
    { code: "# no heading\n- no item" },
    { paragraph: ["what it shows"] },
    { paragraph: ["End"] },
  ]);
});

test("text: code is not read further, links lead where they resolve to, markup stays text", () => {
  const text =
    "`**a**` and ``b`c``, **strong `code`**, [a `link`](page.md#at), [nowhere](src/a.ts), ![a picture](a.png), 2 * 3 * 4, \\*, <img src=x>";
  assert.deepEqual(readMarkdown(text, resolve), [
    {
      paragraph: [
        { code: "**a**" },
        " and ",
        { code: "b`c" },
        ", ",
        { strong: ["strong ", { code: "code" }] },
        ", ",
        { link: "#/page.md#at", text: ["a ", { code: "link" }] },
        ", nowhere, a picture, 2 * 3 * 4, *, <img src=x>",
      ],
    },
  ]);
});
