/**
 * Pairs of files: `NAME.in.yaml` is a configuration; `NAME.out.yaml` what it becomes, or `NAME.out.txt` what `tracegate
 * check` prints about it. A comment `# env: NAME=value` in the input sets a variable, `# behind URL: JSON` says what is
 * there, and `# not behind URL: WHY` why nothing is. `$CERTIFICATES` is a folder with the
 * certificates of a CA that is made for the test, which outputs name by their files. UPDATE_GOLDEN=1 writes the outputs.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { stringify } from "yaml";
import { formatOrigin, type Origin } from "../../src/base/origin.ts";
import { reportOf } from "../../src/config/check.ts";
import { loadConfig } from "../../src/config/load.ts";
import type { Settings } from "../../src/config/settings.ts";
import type { FrontendOrigins } from "../../src/ir/ir.ts";
import { packIr, unpackIr } from "../../src/ir/packed-ir.ts";
import { renderReport } from "../../src/main/check-report.ts";
import { formatDiagnostics } from "../../src/translation/problems/diagnostics.ts";
import type { Resource } from "../../src/translation/resources/store.ts";
import { noOpenssl, TestCa } from "../helpers/certificates.ts";

const FOLDER = new URL("config/", import.meta.url);
/** Of the machine's properties, only the number of processors shows in a configuration. */
const MACHINE = { CPU_LIMIT: "4" };

for (const file of readdirSync(FOLDER).filter((each) => each.endsWith(".in.yaml"))) {
  const name = file.slice(0, -".in.yaml".length);
  const input = readFileSync(new URL(file, FOLDER), "utf8");
  const withCertificates = input.includes("$CERTIFICATES");
  test(name, { skip: withCertificates && noOpenssl }, () => {
    const { extension, text } = withCertificates ? certified(file, input) : outcome(file, input);
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

interface Outcome {
  readonly extension: ".out.yaml" | ".out.txt";
  readonly text: string;
}

/** The same with two certificates and their CA, which differ each time; `cut.pem` is the CA twice, the second time in part. */
function certified(file: string, input: string): Outcome {
  using ca = new TestCa();
  const { folder } = ca;
  for (const name of ["a.example", "b.example"]) ca.issue(name);
  writeFileSync(`${folder}/cut.pem`, ca.cert + ca.cert.slice(0, 200));
  const { extension, text } = outcome(file, input, { CERTIFICATES: folder });
  let shown = text;
  for (const name of readdirSync(folder)) {
    const lines = readFileSync(join(folder, name), "utf8").trimEnd().split("\n");
    // YAML writes a text of several lines as a block, indented.
    shown = shown.replace(
      new RegExp(`\\|\\n${lines.map((line) => ` *${line.replaceAll("+", "\\+")}\\n`).join("")}`, "g"),
      `<${name}>\n`,
    );
  }
  return { extension, text: shown.replaceAll(folder, "$CERTIFICATES") };
}

function outcome(file: string, text: string, surroundings: Readonly<Record<string, string>> = {}): Outcome {
  const source = { kind: "text", text, name: file } as const;
  const env = { ...MACHINE, ...surroundings, ...variables(text) };
  const loaded = loadConfig(source, env, resources(text));
  if (!loaded.ok) {
    return { extension: ".out.txt", text: renderReport(reportOf(loaded)) };
  }
  const { config, ir, warnings } = loaded;
  assert.deepEqual(unpackIr(packIr(ir)), ir, "workers get the same");
  const shown = {
    ...(warnings.length > 0 && { warnings: formatDiagnostics(warnings) }),
    ...ir,
    settings: changed(config),
  };
  const asText = (key: unknown, value: unknown): unknown => {
    if (key === "origins") return textOfOrigins(value as FrontendOrigins);
    return key === "origin" ? formatOrigin(value as Origin) : value;
  };
  return { extension: ".out.yaml", text: stringify(shown, asText, { aliasDuplicateObjects: false, lineWidth: 0 }) };
}

function textOfOrigins(origins: FrontendOrigins): unknown {
  return Object.fromEntries(Object.entries(origins).map(([field, each]) => [field, each.map(formatOrigin).join(", ")]));
}

function variables(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/^# env: (\w+)=(.*)$/gm)].map(([, name = "", value = ""]) => [name, value]),
  );
}

function resources(text: string): Map<string, Resource> {
  return new Map(
    [...text.matchAll(/^# (not )?behind (\S+): (.*)$/gm)].map(([, not, url = "", what = ""]) => [
      url,
      not === undefined ? { text: what } : { problem: what },
    ]),
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
