/** Checks that docs/lifecycle.md shows the phases that requests run through and every error that ends them. */
import { ERRORS } from "../src/base/errors.ts";
import { PHASES } from "../src/proxy/phases/handle-request.ts";
import { projectFiles, readText } from "./lib/files.ts";
import type { Result } from "./lib/report.ts";

const LIFECYCLE = "docs/lifecycle.md";
const TABLE = "src/base/errors.ts";

/** The page's headings (`## 1. accept`) are exactly the phases of the code, in their order. */
function phaseProblems(phases: readonly string[]): string[] {
  const drawn = [...readText(LIFECYCLE).matchAll(/^## \d+\. (.+)$/gm)].map((match) => match[1] ?? "");
  if (drawn.join() === phases.join()) return [];
  return [`${LIFECYCLE}: draws ${drawn.join(", ")}; src/proxy/phases/handle-request.ts runs ${phases.join(", ")}`];
}

/** Every error code of the table is used by a source and shown on the page; the page and the sources name no other. */
function errorProblems(): string[] {
  const codes = (text: string) => new Set<string>(text.match(/\bTG_[A-Z_]+\b/g));
  const drawn = codes(readText(LIFECYCLE));
  const used = codes(
    projectFiles()
      .filter((path) => /^src\/.*\.ts$/.test(path) && path !== TABLE && !path.endsWith(".test.ts"))
      .map(readText)
      .join("\n"),
  );
  const known = Object.keys(ERRORS);
  return [
    ...known
      .filter((code) => !drawn.has(code))
      .map((code) => `${LIFECYCLE}: does not say where ${code} leaves the path`),
    ...known.filter((code) => !used.has(code)).map((code) => `${TABLE}: no source uses ${code}`),
    ...[...drawn, ...used]
      .filter((code) => !known.includes(code))
      .map((code) => `${LIFECYCLE} or a source: ${code} is not in ${TABLE}`),
  ];
}

export function checkLifecycle(): Result {
  return {
    problems: [...phaseProblems(PHASES.map((phase) => phase.name)), ...errorProblems()],
    summary: `${PHASES.length} phases, ${Object.keys(ERRORS).length} errors`,
  };
}
