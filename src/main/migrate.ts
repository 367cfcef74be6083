import { randomBytes } from "node:crypto";
import { realpathSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { messageOf } from "../base/errors.ts";
import { migrateConfig } from "../config/migrate/migrate.ts";
import { readText } from "../config/parse/inputs.ts";
import { formatDiagnostics } from "../translation/problems/diagnostics.ts";

/**
 * Rewrites fields of a configuration file that have moved (`migrateConfig`): all of them or, if one cannot be moved, none.
 * Prints what it did. Resolves with the exit code: 0 if the file is up to date, else 1.
 */
export async function migrate(file: string, print: (text: string) => Promise<void>): Promise<number> {
  let text: string;
  try {
    text = readText(file);
  } catch (error) {
    await print(`${file}: error: cannot read the file: ${messageOf(error)}\n`);
    return 1;
  }
  const migration = migrateConfig(file, text);
  if (!migration.ok) {
    await print(formatDiagnostics(migration.diagnostics));
    return 1;
  }
  if (!migration.changed) {
    await print(`Nothing to migrate: ${file}\n`);
    return 0;
  }
  try {
    replace(realpathSync(file), migration.text);
  } catch (error) {
    await print(`${file}: error: cannot write the file: ${messageOf(error)}\n`);
    return 1;
  }
  await print(`Migrated config: ${file}\n`);
  return 0;
}

/** Replaces the file in one step: a gateway that watches it must not read half of it. */
function replace(path: string, text: string): void {
  const beside = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    writeFileSync(beside, text, { mode: statSync(path).mode, flag: "wx" });
    renameSync(beside, path);
  } catch (error) {
    rmSync(beside, { force: true });
    throw error;
  }
}
