/**
 * Writes src/policies/envoy/testing/descriptors.json: the fields of the messages in src/policies/envoy/ as Envoy publishes
 * them, from the descriptors of its Go module. Needs Go; run it after adding a message: node scripts/envoy-descriptors.ts
 */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { allTables } from "../src/policies/envoy/testing/tables.ts";

const FOLDER = fileURLToPath(new URL("envoy-descriptors", import.meta.url));
const TARGET = fileURLToPath(new URL("../src/policies/envoy/testing/descriptors.json", import.meta.url));

const { status, stdout, stderr, error } = spawnSync("go", ["run", "."], {
  cwd: FOLDER,
  encoding: "utf8",
  input: [...allTables().keys()].sort().join("\n"),
});
if (status === 0) {
  const messages = Object.entries(JSON.parse(stdout) as Record<string, object>);
  const lines = messages.map(([name, fields]) => `  ${JSON.stringify(name)}: ${JSON.stringify(fields)}`);
  writeFileSync(TARGET, `{\n${lines.join(",\n")}\n}\n`);
} else {
  console.error(`cannot read the descriptors with Go: ${error?.message ?? stderr}`);
  process.exitCode = 1;
}
