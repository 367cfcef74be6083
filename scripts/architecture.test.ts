import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path/posix";
import { suite, test } from "node:test";
import { ROOMS } from "./layers.ts";
import { projectFiles, readText, root } from "./lib/files.ts";
import { importsOf, withoutComments } from "./lib/source.ts";

/**
 * Follows docs/architecture.md through the code. A step of a walk is a list item that begins with a file and the names in it that
 * matter: "1. `src/a/b.ts` `Name`, `other`: text". From each step the next one must be reachable: one of the two files imports
 * the other, or files that the later step names as "via `src/c/d.ts`" connect them, one after the other.
 */
const PAGE = "docs/architecture.md";

interface Step {
  readonly file: string;
  readonly names: readonly string[];
  readonly via: readonly string[];
}

/** Sections by heading, with the steps of those that have some. */
function walks(): ReadonlyMap<string, readonly Step[]> {
  const found = new Map<string, readonly Step[]>();
  for (const section of readText(PAGE).split(/^## /m).slice(1)) {
    const [heading = ""] = section.split("\n", 1);
    const steps = [...section.matchAll(/^\d+\. (?:.*\n?)(?:^ {3,4}\S.*\n?)*/gm)].map(([item]) => readStep(item));
    if (steps.length > 0) found.set(heading, steps);
  }
  return found;
}

function readStep(item: string): Step {
  const [head = ""] = item.split(":", 1);
  const [file = "", ...names] = [...head.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? "");
  return { file, names, via: [...item.matchAll(/\bvia\s+`([^`]+)`/g)].map((match) => match[1] ?? "") };
}

/** The files below src/ that a file imports, types included. */
function importsFrom(file: string): ReadonlySet<string> {
  return new Set(
    importsOf(readText(file))
      .filter(({ specifier }) => specifier.startsWith("."))
      .map(({ specifier }) => join(dirname(file), specifier)),
  );
}

function connected(a: string, b: string): boolean {
  return a === b || importsFrom(a).has(b) || importsFrom(b).has(a);
}

/** The declaration of a function, class, type, constant, method or field. */
function declares(file: string, name: string): boolean {
  const words = "(?:export|default|async|function\\*?|class|interface|type|const|let|static|readonly|override|get|set)";
  return new RegExp(`^\\s*(?:${words}\\s+)*[*#]?${name}\\b\\s*[(<:={?;,]|^\\s*(?:export )?class ${name}\\b`, "m").test(
    withoutComments(readText(file)),
  );
}

test("the page describes every room, in the order of imports", () => {
  const [table = ""] = readText(PAGE).split("```text");
  const described = [...table.matchAll(/^\| `src\/(\w+)\/` \|/gm)].map((match) => match[1] ?? "");
  const rooms = readdirSync(`${root}src`, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  assert.deepEqual(described.toSorted(), rooms.map(({ name }) => name).toSorted());
  assert.deepEqual(described, ROOMS);
});

const all = walks();

/** Folders of tests' helpers, which belong to no floor. */
const HELPERS = ["fixtures", "testing"];

test("the drawing has every room once, and no room on a floor above one that imports it", () => {
  const [, drawing = ""] = /```text\n([\s\S]*?)```/.exec(readText(PAGE)) ?? [];
  const floors = drawing.split("\n").map((line) => line.trim().split(/ {2,}/, 1)[0]?.split(" · ") ?? []);
  const floorOf = new Map(floors.flatMap((rooms, floor) => rooms.map((room) => [room, floor] as const)));
  floorOf.delete("");
  assert.deepEqual([...floorOf.keys()].toSorted(), ROOMS.toSorted());
  for (const path of projectFiles().filter((each) => /^src\/\w+\/.*(?<!\.test)\.ts$/.test(each))) {
    for (const target of importsFrom(path)) {
      const [from = "", to = ""] = [path, target].map((each) => each.split("/")[1]?.replace(/\.ts$/, ""));
      assert.ok(
        (floorOf.get(from) ?? 0) <= (floorOf.get(to) ?? 0),
        `${path} imports ${target}, which is drawn above it`,
      );
    }
  }
});

for (const [, room = "", list = ""] of readText(PAGE).matchAll(/^\| `(src\/[\w/]+)\/` \| (`\w+`(?:, `[\w-]+`)*) \|$/gm))
  test(`the sub-rooms of ${room} are listed from the bottom to the top`, () => {
    const listed = [...list.matchAll(/`([\w-]+)`/g)].map(([, name = ""]) => name);
    const folders = readdirSync(root + room, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    const names = folders.map(({ name }) => name).filter((name) => !HELPERS.includes(name));
    assert.deepEqual(listed.toSorted(), names.toSorted());
    const subRoom = (path: string): number => listed.indexOf(path.slice(room.length + 1).split("/")[0] ?? "");
    for (const path of projectFiles().filter((each) => each.startsWith(`${room}/`) && /(?<!\.test)\.ts$/.test(each)))
      for (const target of importsFrom(path)) {
        const [from, to] = [subRoom(path), target.startsWith(`${room}/`) ? subRoom(target) : -1];
        assert.ok(from < 0 || to <= from, `${path} imports ${target}, a later sub-room`);
      }
  });

test("there are the eight walks", () => {
  assert.deepEqual(
    [...all.keys()],
    [
      "A request",
      "A configuration",
      "A Gateway API object",
      "A configuration from a controller",
      "A trace event",
      "An explanation",
      "A record",
      "A shutdown",
    ],
  );
});

for (const [heading, steps] of all) {
  suite(`walk: ${heading}`, () => {
    for (const { file, names } of steps)
      test(`${file} has ${names.join(", ")}`, () => {
        assert.ok(existsSync(root + file), `${file} does not exist`);
        assert.ok(names.length > 0, "a step names what to look for in its file");
        for (const name of names) assert.ok(declares(file, name), `${file} declares no ${name}`);
      });
    for (const [index, { file, via }] of steps.entries()) {
      const before = steps[index - 1]?.file;
      if (before === undefined || before === file) continue;
      test(`${before} leads to ${file}`, () => {
        const way = [before, ...via, file];
        for (const [at, next] of way.slice(1).entries())
          assert.ok(
            connected(way[at] ?? "", next),
            `neither ${way[at]} nor ${next} imports the other; name the file between them with via`,
          );
      });
    }
  });
}
