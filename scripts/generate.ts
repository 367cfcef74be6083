/** `npm run generate`: writes the files that are made from code. `--check` only tells which of them are not current. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path/posix";
import { commandPage, completionFiles } from "../src/cli/generated.ts";
import { celPage } from "./lib/cel-docs.ts";
import { generated as configFiles } from "./lib/config-generated.ts";
import { errorPage, errorTable } from "./lib/error-docs.ts";
import { readText, root } from "./lib/files.ts";
import type { Result } from "./lib/report.ts";
import { tracePage, traceSchema } from "./lib/trace-docs.ts";

/** Path relative to the checkout → content. */
function generatedFiles(): ReadonlyMap<string, string> {
  return new Map([
    ...Object.entries(configFiles(readExample)),
    ["docs/expressions.md", celPage(readText("docs/expressions.md"))],
    ["docs/errors.md", errorPage()],
    ["schema/errors.json", errorTable()],
    ["docs/trace-events.md", tracePage()],
    ["schema/trace-event.json", traceSchema()],
    ["docs/tgctl.md", commandPage(readText("docs/tgctl.md"))],
    ...completionFiles(),
  ]);
}

function readExample(path: string): string {
  if (!existsSync(root + path)) throw new Error(`${path} is missing: every policy has an example that runs`);
  return readText(path);
}

/** Compares the checked-in files with what the code makes now. */
export function checkGenerated(): Result {
  const files = generatedFiles();
  const stale = [...files].filter(([path, text]) => !existsSync(root + path) || readText(path) !== text);
  return {
    problems: stale.map(([path]) => `${path}: not what the code makes now; run "npm run generate"`),
    summary: `${files.size} files`,
  };
}

if (import.meta.main) {
  for (const [path, text] of generatedFiles()) {
    mkdirSync(dirname(root + path), { recursive: true });
    writeFileSync(root + path, text);
  }
}
