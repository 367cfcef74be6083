import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path/posix";
import { test } from "node:test";
import { readText, root } from "../../../scripts/lib/files.ts";
import { importsOf } from "../../../scripts/lib/source.ts";

/** The module and those that it imports by their path. */
function loadedWith(path: string, loaded = new Set<string>()): ReadonlySet<string> {
  if (loaded.has(path)) return loaded;
  loaded.add(path);
  for (const { specifier, kind } of importsOf(readText(path)))
    if (kind !== "type" && specifier.startsWith(".")) loadedWith(join(dirname(path), specifier), loaded);
  return loaded;
}

test("the build of the image gets every folder that it needs", () => {
  const lines = readFileSync(`${root}.dockerignore`, "utf8").split("\n");
  const sent = new Set(lines.flatMap((line) => (line.startsWith("!") ? [line.slice(1)] : [])));
  const modules = [...loadedWith("scripts/build.ts"), ...loadedWith("ui/main.tsx")];
  const folders = new Set(modules.map((path) => path.split("/")[0] ?? ""));
  assert.ok(folders.has("ui") && folders.has("src"));
  assert.deepEqual(
    [...folders].filter((folder) => !sent.has(folder)),
    [],
  );
  // Read as text: the web view has the documentation, and is compiled by the settings of the checkout.
  for (const read of ["docs", "tsconfig.json"]) assert.ok(sent.has(read), read);
});
