/**
 * Pairs of files: `NAME.in.yaml` is a configuration; `NAME.out.yaml` what `/config_dump` shows of it before the first request,
 * without settings and version. UPDATE_GOLDEN=1 writes the outputs.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { stringify } from "yaml";
import { loadConfig } from "../../src/config/load.ts";
import { packIr, unpackIr } from "../../src/ir/packed-ir.ts";
import { dumpIr } from "../../src/main/config-dump.ts";
import { formatDiagnostics } from "../../src/translation/problems/diagnostics.ts";

const FOLDER = new URL("dump/", import.meta.url);

for (const file of readdirSync(FOLDER).filter((each) => each.endsWith(".in.yaml")))
  test(`the dump of ${file}`, () => {
    const text = readFileSync(new URL(file, FOLDER), "utf8");
    const loaded = loadConfig({ kind: "text", text, name: file }, {});
    assert.ok(loaded.ok, loaded.ok ? "" : formatDiagnostics(loaded.diagnostics));
    const live = { ports: {}, endpoints: new Map(), calls: new Map(), locality: {}, hidden: new Set<string>() };
    const dump = stringify(dumpIr(unpackIr(packIr(loaded.ir)), live), { aliasDuplicateObjects: false, lineWidth: 0 });
    assert.ok(!dump.includes("s3cret"));
    const path = new URL(file.replace(/\.in\.yaml$/, ".out.yaml"), FOLDER);
    if (process.env.UPDATE_GOLDEN !== undefined) writeFileSync(path, dump);
    assert.equal(dump, readFileSync(path, "utf8"));
  });
