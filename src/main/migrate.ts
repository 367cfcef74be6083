import { randomBytes } from "node:crypto";
import { realpathSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { fileProblem } from "../base/file-problem.ts";
import { migrateConfig } from "../config/migrate/migrate.ts";
import { readConfigFiles } from "../config/parse/config-files.ts";
import { InputReader } from "../config/parse/inputs.ts";
import { formatDiagnostics } from "../translation/problems/diagnostics.ts";

/**
 * Rewrites fields of configuration files that have moved (`migrateConfig`): all of them or, if one cannot be moved, none.
 * Prints what it did. Resolves with the exit code: 0 if the files are up to date, else 1.
 */
export async function migrate(paths: readonly string[], print: (text: string) => Promise<void>): Promise<number> {
  const { texts, problems } = readConfigFiles(paths, new InputReader());
  for (const { file, message } of problems) await print(`${file}: error: ${message}\n`);
  const migrations = texts.map(({ name, text }) => ({ name, migration: migrateConfig(name, text) }));
  const diagnostics = migrations.flatMap(({ migration }) => (migration.ok ? [] : migration.diagnostics));
  if (diagnostics.length > 0) await print(formatDiagnostics(diagnostics));
  if (diagnostics.length > 0 || problems.length > 0) return 1;
  for (const { name, migration } of migrations) {
    if (!migration.ok || !migration.changed) {
      await print(`Nothing to migrate: ${name}\n`);
      continue;
    }
    try {
      replace(realpathSync(name), migration.text);
    } catch (error) {
      await print(`${name}: error: cannot write the file: ${fileProblem(error)}\n`);
      return 1;
    }
    await print(`Migrated config: ${name}\n`);
  }
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
