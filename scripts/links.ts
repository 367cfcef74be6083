/** Checks that no link between the files of the documentation is broken. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path/posix";
import { projectFiles, readText, root } from "./lib/files.ts";
import type { Result } from "./lib/report.ts";

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

export function checkLinks(): Result {
  const pages = projectFiles().filter((path) => path.endsWith(".md"));
  return { problems: pages.flatMap(brokenLinks), summary: `${pages.length} pages` };
}
