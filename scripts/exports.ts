/**
 * Finds exports that nothing imports: what a module offers is what others use. The project's imports name what they take, so a
 * scan of names decides in half a second what a dependency such as knip would.
 */
import { dirname, join } from "node:path/posix";
import { projectFiles, readText } from "./lib/files.ts";
import type { Result } from "./lib/report.ts";
import { importsOf, withoutComments } from "./lib/source.ts";

const DECLARED =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:function\*?|const|let|class|interface|type) ([\w$]+)/gm;
const LISTED = /^export (?:type )?\{([^}]*)\}/gm;

/** The names that a module exports, each with its line. `export *` is followed by nobody here: the project does not use it. */
function exportsOf(code: string): { readonly name: string; readonly line: number }[] {
  const lineAt = (index: number) => code.slice(0, index).split("\n").length;
  const declared = [...code.matchAll(DECLARED)].map(({ 1: name = "", index }) => ({ name, line: lineAt(index) }));
  const listed = [...code.matchAll(LISTED)].flatMap(({ 1: names = "", index }) =>
    names
      .split(",")
      .map((item) => item.trim().split(/\s+/).at(-1) ?? "")
      .filter((name) => name !== "")
      .map((name) => ({ name, line: lineAt(index) })),
  );
  return [...declared, ...listed];
}

/** Exports of `sources` below src/ (texts by path) that no other of them uses. */
export function unusedExports(sources: ReadonlyMap<string, string>): Result {
  const code = new Map([...sources].map(([path, text]) => [path, withoutComments(text)]));
  /** What the importers of a module name, as text. */
  const taken = new Map<string, string>();
  /** Modules that somebody takes as a whole, by `import()` or `* as`, and may hand on. */
  const whole = new Set<string>();
  for (const [path, text] of code)
    for (const { specifier, clause } of importsOf(text)) {
      if (!specifier.startsWith(".")) continue;
      const target = join(dirname(path), specifier);
      if (clause === "" || clause.includes("*")) whole.add(target);
      else taken.set(target, `${taken.get(target) ?? ""}\n${clause}`);
    }
  const problems: string[] = [];
  let count = 0;
  for (const [path, text] of code) {
    if (!path.startsWith("src/") || path.startsWith("src/gen/")) continue;
    for (const { name, line } of exportsOf(text)) {
      count++;
      const mention = new RegExp(`(?<![\\w$])${name.replaceAll("$", "\\$")}(?![\\w$])`);
      if (mention.test(taken.get(path) ?? "")) continue;
      if (whole.has(path) && [...code].some(([other, of]) => other !== path && mention.test(of))) continue;
      problems.push(`${path}:${line}: nothing imports ${name}; drop \`export\`, or what it exports`);
    }
  }
  return { problems, summary: `${count} exports` };
}

export function checkExports(): Result {
  const sources = projectFiles().filter((path) => /\.(tsx?|mjs|js)$/.test(path) || path.startsWith("bin/"));
  return unusedExports(new Map(sources.map((path) => [path, readText(path)])));
}
