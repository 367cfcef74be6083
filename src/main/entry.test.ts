import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { appRoot } from "../base/app-root.ts";

/** The files below src/ that load with `file`; types and dynamic imports do not count. */
function loadedWith(file: string, loaded = new Set<string>()): ReadonlySet<string> {
  if (loaded.has(file)) return loaded;
  loaded.add(file);
  const source = readFileSync(join(appRoot, file), "utf8");
  for (const [, path = ""] of source.matchAll(/^(?:import|export) (?!type )[^;]*?from "(\.[^"]+)";/gm))
    loadedWith(join(dirname(file), path), loaded);
  return loaded;
}

test("help and version do not load the engine, which would take half a second", () => {
  const rooms = new Set([...loadedWith("src/main.ts")].map((file) => file.split("/")[1]));
  // What command lines and their help need: of the rehearsal assumptions and requests as they are written, with the names of policies; of
  // impacts their text; of reports how a lack of facts is put into words; of translations how problems are printed.
  const expected = [
    "base",
    "cli",
    "config",
    "impact",
    "main",
    "main.ts",
    "policies",
    "rehearsal",
    "report",
    "tls",
    "trace",
    "translation",
  ];
  assert.deepEqual([...rooms].sort(), expected);
  const names = [...loadedWith("src/main.ts")].filter((file) =>
    /^src\/(?:policies|report|tls|trace|translation)\//.test(file),
  );
  assert.deepEqual(names.sort(), [
    "src/policies/contract/shadow.ts",
    "src/policies/order.ts",
    "src/report/supply-text.ts",
    "src/tls/assumed-certificate.ts",
    "src/trace/policy-kinds.ts",
    "src/translation/problems/diagnostics.ts",
  ]);
  assert.ok(!loadedWith("src/main.ts").has("src/rehearsal/rehearsal.ts"));
  assert.ok(!loadedWith("src/main.ts").has("src/config/load.ts"));
  assert.ok(loadedWith("src/main/run.ts").has("src/config/load.ts"));
});
