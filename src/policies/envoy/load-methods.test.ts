import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { appRoot } from "../../base/app-root.ts";

/** Prints which modules below src/gen are loaded when those that its arguments name are. */
const SCRIPT = `
  import { registerHooks } from "node:module";
  const loaded = [];
  registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context); } });
  for (const path of process.argv.slice(1)) await import(path);
  process.stdout.write(JSON.stringify(loaded.filter((url) => url.includes("/src/gen/"))));
`;

function generatedModulesOf(...paths: readonly string[]): string[] {
  const modules = paths.map((path) => `${appRoot}${path}`);
  const args = ["--input-type=module", "-e", SCRIPT, ...modules];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8" }));
}

test("generated messages are loaded by the first call, not with the data plane or the exporter", () => {
  assert.deepEqual(generatedModulesOf("src/proxy/compile/compile-ir.ts", "src/main/telemetry-export.ts"), []);
  assert.ok(generatedModulesOf("src/policies/envoy/methods.ts").length > 5);
});
