import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { isMap, isScalar, isSeq, type Node, parseDocument } from "yaml";
import { fc } from "../../../test/helpers/property.ts";
import { type Marks, readPlainYaml } from "./plain-yaml.ts";

const FOLDER = new URL("../../../examples/", import.meta.url).pathname;
const EXAMPLES = globSync(`${FOLDER}**/*.yaml`).map((file) => readFileSync(file, "utf8"));

/** Each value's path, the offset of its key, and its own, as the complete parser has them. */
function positionsOf(node: unknown, path = ""): string[] {
  const start = (each: unknown): number | undefined => (each as Node | null)?.range?.[0];
  if (isMap(node))
    return node.items.flatMap(({ key, value }) => {
      const range = (value as Node | null)?.range;
      const written = range != null && range[1] > range[0];
      const at = `${path}/${isScalar(key) ? String(key.value) : "?"}`;
      return [`${at} ${start(key)} ${start(written ? value : key)}`, ...positionsOf(value, at)];
    });
  if (isSeq(node))
    return node.items.flatMap((each, i) => [
      `${path}/${i} undefined ${start(each)}`,
      ...positionsOf(each, `${path}/${i}`),
    ]);
  return [];
}

function marksOf(marks: Marks, value: unknown, path = ""): string[] {
  return Array.from(marks.get(value) ?? []).flatMap(([part, mark]) => {
    const at = `${path}/${String(part)}`;
    return [
      `${at} ${mark.key} ${mark.value}`,
      ...marksOf(marks, (value as Readonly<Record<PropertyKey, unknown>>)[part], at),
    ];
  });
}

/** Whether it was read; if so, as the complete parser does, which finds nothing wrong with it. */
function readsAlike(text: string): boolean {
  const marks: Marks = new Map();
  const read = readPlainYaml(text, marks);
  assert.deepEqual(readPlainYaml(text)?.value, read?.value, "marks change nothing");
  if (read === undefined) return false;
  const document = parseDocument(text, { prettyErrors: false, merge: true });
  assert.deepEqual([...document.errors, ...document.warnings], [], text);
  assert.deepEqual(read.value, document.toJS(), text);
  assert.equal(read.start, document.contents?.range?.[0], text);
  assert.deepEqual(marksOf(marks, read.value), positionsOf(document.contents), text);
  return true;
}

test("most examples need only this parser, with the same result", () => {
  const read = EXAMPLES.filter(readsAlike);
  assert.ok(read.length > EXAMPLES.length * 0.8, `${read.length} of ${EXAMPLES.length}`);
});

test("the YAML that configurations use", () => {
  for (const text of [
    "a: 1\nb: two words # a comment\nc:\nd: ~\n",
    "# first\n\na:\n  # inside\n  b: {c: [1, x:y, http://z], 'd e': \"f\\n\"}\n\n  g: []\n",
    "a:\n- b: 1\n  c:\n  - d\n  - 'it''s'\n-\n  e: x\n",
    "a: |\n  text: here\n\n    more\nb: |-\n  one\n\nc: 1\n",
    "80: 0.5\nx/y.z-1: No\n:path: /a#b\nx: true\n",
    "a: 1",
  ])
    assert.ok(readsAlike(text), text);
});

test("text that the complete parser reads differently is left to it", () => {
  for (const text of [
    "",
    "- a\n",
    "a: 1\na: 2\n",
    "a: {b: 1, b: 2}\n",
    "a: one\n  line more\n",
    "a: &x 1\nb: *x\n",
    "a: !!str 1\n",
    "<<: {a: 1}\n",
    "a: 0x10\n",
    "a: 1e3\n",
    "a: 007\n",
    "a: -1\n",
    "a: .5\n",
    "a: >\n  folded\n",
    "a: b: c\n",
    "a: [1,\n  2]\n",
    "a: [b: c]\n",
    "a: {b}\n",
    "a: 'x\n  y'\n",
    'a: "\\x41"\n',
    "a:\tb\n",
    "a: b\r\n",
    "null: 1\n",
    "__proto__: {a: 1}\n",
    "a: 1\n---\nb: 2\n",
    "a:\n  b: 1\n c: 2\n",
    "a:\n  - b\n  c: 1\n",
    "a: |\n\n  b\n",
    "a: |+\n  b\n\n",
    "a: 'b'c\n",
    "a: 'b'# no comment\n",
  ])
    assert.equal(readPlainYaml(text), undefined, text);
});

const SNIPPETS = [
  ...[
    " ",
    "  ",
    "\n",
    "- ",
    "-",
    ": ",
    ":",
    "#",
    " #",
    "'",
    '"',
    "[",
    "]",
    "{",
    "}",
    ", ",
    "|",
    "|-",
    ">",
    "&a ",
    "*a",
  ],
  ...[
    "!t ",
    "? ",
    "~",
    "null",
    "1.5",
    "-1",
    "0x1",
    "1e3",
    ".5",
    "a: b",
    "\n  x: y",
    "\n- z",
    "\\n",
    "---\n",
    "...\n",
    "%",
  ],
  ...[
    "@",
    "`",
    "é",
    "\u00a0",
    "<<: ",
    "''",
    "|\n    text\n\n    more\n",
    "a : b",
    "a: - b",
    "[a: b]",
    "{a}",
    "[a,]",
    "00",
  ],
];

const edit = fc.record({
  at: fc.nat(),
  remove: fc.nat({ max: 3 }),
  insert: fc.oneof(fc.constant(""), fc.constantFrom(...SNIPPETS)),
});
/** A part of an example with a few edits. */
const damaged = fc
  .record({
    example: fc.constantFrom(...EXAMPLES),
    from: fc.nat(),
    lines: fc.nat({ max: 20 }),
    edits: fc.array(edit, { maxLength: 3 }),
  })
  .map(({ example, from, lines, edits }) => {
    const all = example.split("\n");
    const start = from % all.length;
    const part = all.slice(start, start + lines + 1);
    const indents = part.filter((line) => line.trim() !== "").map((line) => line.search(/\S/));
    let text = part.map((line) => line.slice(Math.min(...indents, 100))).join("\n");
    for (const { at, remove, insert } of edits) {
      const place = at % (text.length + 1);
      text = text.slice(0, place) + insert + text.slice(place + remove);
    }
    return text;
  });

test("everything that this parser reads, it reads like the complete one", () => {
  let read = 0;
  fc.assert(
    fc.property(damaged, (text) => {
      if (readsAlike(text)) read++;
    }),
    { numRuns: 2000 },
  );
  assert.ok(read > 200, `${read} texts were plain`);
});
