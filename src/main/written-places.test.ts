import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { loadConfig } from "../config/load.ts";
import { WrittenPlaces } from "./written-places.ts";

const folder = mkdtempSync(join(tmpdir(), "written-places-"));
after(() => rmSync(folder, { recursive: true }));

const TEXT = `binds:
- port: \${PORT}
  listeners:
  - routes:
    - policies: {directResponse: {status: 200}}
`;
const ENV = { PORT: "8080" };

/** The places of a file as it was loaded. */
function loaded(name: string, text: string): { readonly path: string; readonly places: WrittenPlaces } {
  const path = join(folder, name);
  writeFileSync(path, text);
  const source = { kind: "files", paths: [path] } as const;
  return { path, places: new WrittenPlaces(source, ENV, loadConfig(source, ENV).inputs.files) };
}

test("fields of the file that was loaded have a line and a column", () => {
  const { path, places } = loaded("a.yaml", TEXT);
  const route = ["binds", 0, "listeners", 0, "routes", 0];
  assert.deepEqual(places.locate(route), { file: path, line: 5, column: 7 });
  assert.deepEqual(places.locate([...route, "policies", "directResponse"]), { file: path, line: 5, column: 18 });
  assert.equal(places.locate([...route, "policies", "authorization"]), undefined);
});

test("a file that has changed is not read: what it says is not in effect", async () => {
  const { path, places } = loaded("b.yaml", TEXT);
  assert.equal(places.locate(["binds", 0])?.line, 2);
  writeFileSync(path, `# more\n${TEXT}`);
  // The text is kept for one turn only.
  await new Promise(setImmediate);
  assert.equal(places.locate(["binds", 0, "listeners", 0]), undefined);
  assert.equal(places.locate(["binds", 0])?.line, 2);
  rmSync(path);
  await new Promise(setImmediate);
  assert.equal(places.locate(["binds"]), undefined);
});

test("a text without a file, and a file that is too large to be read again", () => {
  const text = new WrittenPlaces({ kind: "text", text: TEXT, name: "standard input" }, ENV, new Map());
  assert.deepEqual(text.locate(["binds", 0]), { file: "standard input", line: 2, column: 3 });
  const { places } = loaded("large.yaml", `${TEXT}# ${"x".repeat(1024 * 1024)}\n`);
  assert.equal(places.locate(["binds", 0]), undefined);
});
