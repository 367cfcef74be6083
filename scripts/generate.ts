/** `npm run generate`: writes the files that are made from code. `--check` only reports which of them are stale. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path/posix";
import { assumptionTable } from "./lib/assumption-docs.ts";
import { celPage } from "./lib/cel-docs.ts";
import { checkSchema } from "./lib/check-schema.ts";
import { commandPage } from "./lib/command-page.ts";
import { ConfigReference } from "./lib/config-docs.ts";
import { caseJsonSchema, configJsonSchema, editorJsonSchema, formatSchema } from "./lib/config-schema.ts";
import { crdTables } from "./lib/crd-docs.ts";
import { crdFiles } from "./lib/crds.ts";
import { errorPage, errorTable } from "./lib/error-docs.ts";
import { explanationSchema } from "./lib/explanation-schema.ts";
import { featureTable } from "./lib/feature-docs.ts";
import { readText, root } from "./lib/files.ts";
import { generatedPart } from "./lib/generated-part.ts";
import { impactSchema } from "./lib/impact-schema.ts";
import { installManifest } from "./lib/install-manifest.ts";
import { lintPage } from "./lib/lint-docs.ts";
import { KINDS, policyPages } from "./lib/policy-docs.ts";
import type { Result } from "./lib/report.ts";
import { tracePage, traceSchema } from "./lib/trace-docs.ts";
import { generateMessages } from "./messages.ts";
import { roomPages } from "./rooms.ts";

/** Path relative to the checkout → content. */
function generatedFiles(): ReadonlyMap<string, string> {
  return new Map([
    ...configFiles(),
    ["docs/expressions.md", celPage(readText("docs/expressions.md"))],
    ["docs/errors.md", errorPage()],
    ["docs/lints.md", lintPage()],
    ["schema/errors.json", errorTable()],
    ["docs/trace-events.md", tracePage()],
    ["schema/trace-event.json", traceSchema()],
    [
      "docs/explain.md",
      generatedPart("docs/explain.md", readText("docs/explain.md"), "assumptions", assumptionTable()),
    ],
    ...crdFiles(),
    ["docs/crds.md", generatedPart("docs/crds.md", readText("docs/crds.md"), "fields", crdTables())],
    [
      "docs/kubernetes.md",
      generatedPart("docs/kubernetes.md", readText("docs/kubernetes.md"), "features", featureTable()),
    ],
    ...installManifest(),
    ["docs/tgctl.md", commandPage(readText("docs/tgctl.md"))],
    ...roomPages(),
  ]);
}

/** What is made from the schemas of the configuration. */
function configFiles(): (readonly [path: string, text: string])[] {
  const reference = new ConfigReference(configJsonSchema(), KINDS);
  const page = "docs/configuration.md";
  return [
    ...Object.entries(policyPages(reference, readNeeded)),
    ["schema/config.json", formatSchema(editorJsonSchema())],
    ["schema/check.json", checkSchema()],
    ["schema/explanation.json", explanationSchema()],
    ["schema/impact.json", impactSchema()],
    ["schema/expectations.json", formatSchema(caseJsonSchema())],
    [page, generatedPart(page, readText(page), "fields", reference.configuration())],
  ];
}

function readNeeded(path: string): string {
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
  await generateMessages();
  for (const [path, text] of generatedFiles()) {
    mkdirSync(dirname(root + path), { recursive: true });
    writeFileSync(root + path, text);
  }
}
