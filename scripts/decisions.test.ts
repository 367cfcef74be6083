import assert from "node:assert/strict";
import { test } from "node:test";
import { projectFiles, readText } from "./lib/files.ts";

/** Compares docs/decisions/README.md with the pages that it lists, and finds citations of numbers without a page. */
const FOLDER = "docs/decisions/";
const index = readText(`${FOLDER}README.md`);
const paths = projectFiles().filter((path) => /^docs\/decisions\/\d{4}-/.test(path));

interface Page {
  readonly number: number;
  /** The row of the index that the page's first lines require, without the number. */
  readonly row: string;
  /** Numbers of the decisions that the page includes or supersedes. */
  readonly former: readonly number[];
}

const HEAD = /^# (\d+)\. (.+)\n\nAccepted (\d{4}-\d\d-\d\d) · ([^·\n]+?)( · .+)?\n/;

function readPage(path: string): Page {
  const [, number, title, date, topic, former = ""] = HEAD.exec(readText(path)) ?? [];
  assert.equal(path.slice(FOLDER.length, FOLDER.length + 4), number?.padStart(4, "0"), `${path}: the head of the page`);
  return {
    number: Number(number),
    row: `${topic}: [${title}](${path.slice(FOLDER.length)}) | ${date} | accepted |`,
    former: (former.match(/\d+/g) ?? []).map(Number),
  };
}

const pages = paths.map(readPage);

test("the index has title, topic, date and status of every page", () => {
  let topic = "";
  const rows = [...index.matchAll(/^\| (.*?) \| (\d+)\. (\[.+)$/gm)].map(([, named = "", number, rest]) => {
    topic = named || topic;
    return { number: Number(number), row: `${topic}: ${rest}` };
  });
  const order = (a: { number: number }, b: { number: number }): number => a.number - b.number;
  assert.deepEqual(
    rows.toSorted(order),
    pages.map(({ number, row }) => ({ number, row })),
  );
});

test("the index leads from every former number to the page that includes or supersedes it", () => {
  const listed = [...index.matchAll(/^\| (\d+) \| .* \[(\d+)\]\(\d{4}-[^|]*\|$/gm)].map(
    ([, former, page]) => `${former} → ${page}`,
  );
  const named = pages.flatMap(({ number, former }) => former.map((other) => `${other} → ${number}`));
  assert.deepEqual(listed.toSorted(), named.toSorted());
});

test("a decision that is cited by its number has a page", () => {
  const known = new Set(pages.map(({ number }) => number));
  for (const path of projectFiles().filter((file) => /\.(ts|md|ya?ml|proto)$/.test(file)))
    for (const [text, number] of readText(path).matchAll(/\bdecision (\d+)\b/gi))
      assert.ok(known.has(Number(number)), `${path}: ${text} has no page`);
});
