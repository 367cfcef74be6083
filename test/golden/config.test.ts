/**
 * Pairs of files: `NAME.in.yaml` is a configuration; `NAME.out.yaml` what it becomes, or `NAME.out.txt` what `tracegate
 * check` prints about it. A comment `# env: NAME=value` in the input sets a variable. UPDATE_GOLDEN=1 writes the outputs.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { stringify } from "yaml";
import { formatDiagnostics } from "../../src/config/diagnostics.ts";
import { loadConfig } from "../../src/config/load.ts";
import type { Settings } from "../../src/config/settings.ts";
import { check } from "../../src/main/check.ts";

const FOLDER = new URL("config/", import.meta.url);
/** Of the machine's properties, only the number of processors shows in a configuration. */
const MACHINE = { CPU_LIMIT: "4" };

for (const file of readdirSync(FOLDER).filter((each) => each.endsWith(".in.yaml"))) {
  const name = file.slice(0, -".in.yaml".length);
  test(name, () => {
    const { extension, text } = outcome(file, readFileSync(new URL(file, FOLDER), "utf8"));
    const path = new URL(name + extension, FOLDER);
    if (process.env.UPDATE_GOLDEN !== undefined) {
      writeFileSync(path, text);
      rmSync(new URL(name + (extension === ".out.txt" ? ".out.yaml" : ".out.txt"), FOLDER), { force: true });
      return;
    }
    assert.ok(existsSync(path), `${name}${extension} is missing; run with UPDATE_GOLDEN=1 and read what it wrote`);
    assert.equal(text, readFileSync(path, "utf8"));
  });
}

test("every output belongs to an input", () => {
  const files = readdirSync(FOLDER);
  const lonely = files.filter((each) => !files.includes(each.replace(/\.out\.(yaml|txt)$/, ".in.yaml")));
  assert.deepEqual(lonely, []);
});

function outcome(file: string, text: string): { extension: ".out.yaml" | ".out.txt"; text: string } {
  const source = { kind: "text", text, name: file } as const;
  const env = { ...MACHINE, ...variables(text) };
  const loaded = loadConfig(source, env);
  if (!loaded.ok) {
    let printed = "";
    const code = check(source, false, env, (part) => {
      printed += part;
    });
    assert.equal(code, 1);
    return { extension: ".out.txt", text: printed };
  }
  const { config, ir, warnings } = loaded;
  const shown = {
    ...(warnings.length > 0 && { warnings: formatDiagnostics(warnings) }),
    ...ir,
    settings: changed(config),
  };
  return { extension: ".out.yaml", text: stringify(shown, { aliasDuplicateObjects: false, lineWidth: 0 }) };
}

function variables(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/^# env: (\w+)=(.*)$/gm)].map(([, name = "", value = ""]) => [name, value]),
  );
}

/** The settings that are not what they are by default. */
function changed(settings: Settings): Partial<Settings> {
  const loaded = loadConfig({ kind: "text", text: "{}" }, MACHINE);
  assert.ok(loaded.ok);
  const defaults = new Map<string, unknown>(Object.entries(loaded.config));
  return Object.fromEntries(
    Object.entries(settings).filter(([name, value]) => !isDeepStrictEqual(value, defaults.get(name))),
  );
}
