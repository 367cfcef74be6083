/** Proves that the documentation still speaks of this code: links, configuration samples, the request's phases and its error exits. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path/posix";
import { ERRORS } from "../src/base/errors.ts";
import { projectFiles, readText, root } from "./lib/files.ts";
import type { Result } from "./lib/report.ts";

const LIFECYCLE = "docs/lifecycle.md";
const HANDLER = "src/proxy/handle-request.ts";
/** First line of every configuration that must be valid: in examples/ and in code blocks of the documentation. */
const MARK = "# tracegate config";

/** The anchor that a Markdown heading gets: lower-case, punctuation gone, spaces to hyphens. */
function anchor(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replace(/\s/g, "-");
}

function anchorsOf(path: string): Set<string> {
  return new Set([...readText(path).matchAll(/^#{1,6}\s+(.*)$/gm)].map((match) => anchor(match[1] ?? "")));
}

/** Links between files of the checkout: the file has to exist, and the heading when the link names one. */
function brokenLinks(path: string): string[] {
  const problems: string[] = [];
  const prose = readText(path).replace(/^```[\s\S]*?^```/gm, (block) => block.replace(/[^\n]/g, ""));
  prose.split("\n").forEach((line, index) => {
    for (const match of line.matchAll(/\]\(([^)\s]+)\)/g)) {
      const [file = "", heading] = (match[1] ?? "").split("#");
      if (/^[a-z]+:/.test(file)) continue;
      const target = file === "" ? path : join(dirname(path), file);
      const where = `${path}:${index + 1}: ${match[1]}`;
      if (!existsSync(root + target)) problems.push(`${where}: no such file`);
      else if (heading !== undefined && !anchorsOf(target).has(heading)) problems.push(`${where}: no such heading`);
    }
  });
  return problems;
}

/** Every marked configuration, with the place of its first line. */
function configurations(files: readonly string[]): { where: string; text: string }[] {
  const examples = files
    .filter((path) => /^examples\/.*\.ya?ml$/.test(path))
    .map((path) => ({ where: path, text: readText(path) }));
  const blocks = files
    .filter((path) => path.endsWith(".md"))
    .flatMap((path) => {
      const text = readText(path);
      return [...text.matchAll(/^```ya?ml\n([\s\S]*?)^```/gm)]
        .filter((match) => match[1]?.startsWith(MARK))
        .map((match) => ({
          where: `${path}:${text.slice(0, match.index).split("\n").length + 1}`,
          text: match[1] ?? "",
        }));
    });
  return [...examples, ...blocks];
}

/** The page draws exactly the phases of the code, in their order, as headings `## 1. accept`. */
function phaseProblems(phases: readonly string[]): string[] {
  const drawn = [...readText(LIFECYCLE).matchAll(/^## \d+\. (.+)$/gm)].map((match) => match[1] ?? "");
  if (drawn.join() === phases.join()) return [];
  return [`${LIFECYCLE}: draws ${drawn.join(", ")}; ${HANDLER} runs ${phases.join(", ")}`];
}

/** The page names every error code of the table, and no other. */
function errorProblems(): string[] {
  const named = new Set<string>(readText(LIFECYCLE).match(/\bTG_[A-Z_]+\b/g));
  const known = Object.keys(ERRORS);
  return [
    ...known
      .filter((code) => !named.has(code))
      .map((code) => `${LIFECYCLE}: does not say where ${code} leaves the path`),
    ...[...named]
      .filter((code) => !known.includes(code))
      .map((code) => `${LIFECYCLE}: ${code} is not in src/base/errors.ts`),
  ];
}

export async function checkDocs(): Promise<Result> {
  const files = projectFiles();
  const pages = files.filter((path) => path.endsWith(".md"));
  const configs = configurations(files);
  const { PHASES } = await import("../src/proxy/handle-request.ts");
  const problems = [
    ...pages.flatMap(brokenLinks),
    ...errorProblems(),
    ...phaseProblems(PHASES.map((phase) => phase.name)),
  ];
  return { problems, summary: `${pages.length} pages, ${configs.length} configurations` };
}
