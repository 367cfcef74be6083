/** The files that are made from the command data: shell completions, and the command reference in `docs/tgctl.md`. */
import { commands } from "./commands/index.ts";
import { completionScript } from "./completion/scripts.ts";
import { isGroup, type Node } from "./define-command.ts";
import { EXIT_CODES } from "./errors.ts";
import { renderHelp } from "./help.ts";

/** Path below the package's folder → content. */
export function completionFiles(): ReadonlyMap<string, string> {
  return new Map([
    ["completions/tgctl.bash", completionScript("bash", commands)],
    ["completions/_tgctl", completionScript("zsh", commands)],
    ["completions/tgctl.fish", completionScript("fish", commands)],
  ]);
}

const BEGIN = "<!-- generated: exit codes and commands -->";

/** The page with its end, from the mark on, written anew. */
export function commandPage(page: string): string {
  const [written = ""] = page.split(BEGIN);
  const codes = EXIT_CODES.map(({ code, meaning }) => `| ${code} | ${meaning} |`).join("\n");
  const exit = `## Exit codes\n\n| code | meaning |\n|---|---|\n${codes}\n`;
  return `${written}${BEGIN}\n\n${exit}\n## Commands\n\n${sections(commands, []).join("\n")}`;
}

function sections(node: Node, path: readonly string[]): string[] {
  const inner = [...path, node.name];
  const here = `### ${inner.join(" ")}\n\n\`\`\`text\n${renderHelp(node, path)}\`\`\`\n`;
  return [here, ...(isGroup(node) ? node.commands.flatMap((child) => sections(child, inner)) : [])];
}
