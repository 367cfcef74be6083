/** Proves that the configurations in examples/ and in the documentation are valid. */
import { loadConfig } from "../src/config/load.ts";
import { formatDiagnostics } from "../src/translation/problems/diagnostics.ts";
import { projectFiles, readText, root } from "./lib/files.ts";
import type { Result } from "./lib/report.ts";

/** First line of every configuration that must be valid, in examples/ and in code blocks. */
const MARK = "# tracegate config";
/** `# env: NAME=value`: what a configuration needs in its environment. */
const ENV = /^# env: (\w+)=(.*)$/gm;

/** A configuration of several files. */
const FOLDER = "examples/conf.d";

/** Every marked configuration, with the place of its first line. */
function configurations(files: readonly string[]): { where: string; text: string }[] {
  const examples = files
    .filter((path) => /^examples\/(?!cases\/|conf\.d\/|kubernetes\/).*\.ya?ml$/.test(path))
    .map((path) => ({ where: path, text: readText(path) }))
    .concat({ where: FOLDER, text: "" });
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

export function checkConfigurations(): Result {
  const configs = configurations(projectFiles());
  const problems: string[] = [];
  for (const { where, text } of configs) {
    const env = Object.fromEntries([...text.matchAll(ENV)].map(([, name = "", value = ""]) => [name, value]));
    // Examples name files beside them.
    const source = where.startsWith("examples/")
      ? ({ kind: "files", paths: [`${root}${where}`] } as const)
      : ({ kind: "text", text, name: where } as const);
    const loaded = loadConfig(source, env);
    if (!loaded.ok)
      problems.push(`${where}: not valid:`, ...formatDiagnostics(loaded.diagnostics).trimEnd().split("\n"));
  }
  return { problems, summary: `${configs.length} configurations` };
}
