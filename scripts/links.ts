/** Checks that no link between the files of the documentation is broken, nor a citation of a page in a comment of src/. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path/posix";
import { projectFiles, readText, root } from "./lib/files.ts";
import { anchorOf } from "./lib/markdown.ts";
import type { Result } from "./lib/report.ts";

function anchorsOf(path: string): Set<string> {
  return new Set([...readText(path).matchAll(/^#{1,6}\s+(.*)$/gm)].map((match) => anchorOf(match[1] ?? "")));
}

/** What is wrong with the target of a link: the file has to exist, and the heading when the link names one. */
function problemOf(target: string, heading: string | undefined): string | undefined {
  if (!existsSync(root + target)) return "no such file";
  return heading === undefined || anchorsOf(target).has(heading) ? undefined : "no such heading";
}

/** Links of a page to files of the checkout. */
function brokenLinks(path: string): string[] {
  const problems: string[] = [];
  const prose = readText(path).replace(/^```[\s\S]*?^```/gm, (block) => block.replace(/[^\n]/g, ""));
  prose.split("\n").forEach((line, index) => {
    for (const match of line.matchAll(/\]\(([^)\s]+)\)/g)) {
      const [file = "", heading] = (match[1] ?? "").split("#");
      if (/^[a-z]+:/.test(file)) continue;
      const problem = problemOf(file === "" ? path : join(dirname(path), file), heading);
      if (problem !== undefined) problems.push(`${path}:${index + 1}: ${match[1]}: ${problem}`);
    }
  });
  return problems;
}

/** Pages that code cites, as `docs/errors.md` or `docs/errors.md#client`. */
function brokenCitations(path: string): string[] {
  const problems: string[] = [];
  readText(path)
    .split("\n")
    .forEach((line, index) => {
      for (const [cited, file = "", heading] of line.matchAll(/(?<![\w/.])(docs\/[\w/-]+\.md)(?:#([\w-]+))?/g)) {
        const problem = problemOf(file, heading);
        if (problem !== undefined) problems.push(`${path}:${index + 1}: ${cited}: ${problem}`);
      }
    });
  return problems;
}

export function checkLinks(): Result {
  const pages = projectFiles().filter((path) => path.endsWith(".md"));
  const sources = projectFiles().filter((path) => /^src\/.*\.ts$/.test(path));
  return {
    problems: [...pages.flatMap(brokenLinks), ...sources.flatMap(brokenCitations)],
    summary: `${pages.length} pages, ${sources.length} sources`,
  };
}
