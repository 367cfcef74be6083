/** The part of `docs/tgctl.md` that is made from the command data. */
import { isGroup, type Node, type Program } from "../../src/cli/runner/define-command.ts";
import { renderHelp } from "../../src/cli/runner/help.ts";
import { tgctl } from "../../src/cli/tgctl.ts";

const BEGIN = "<!-- generated: exit codes and commands -->";

/** The page with the part after the mark replaced. */
export function commandPage(page: string): string {
  const program = tgctl(() => Promise.reject(new Error("pages of help have no terminal")));
  const [written = ""] = page.split(BEGIN);
  const codes = program.exitCodes.map(([code, meaning]) => `| ${code} | ${meaning} |`).join("\n");
  const exit = `## Exit codes\n\n| code | meaning |\n|---|---|\n${codes}\n`;
  return `${written}${BEGIN}\n\n${exit}\n## Commands\n\n${sections(program, program, []).join("\n")}`;
}

function sections(program: Program, node: Node, path: readonly string[]): string[] {
  const inner = [...path, node.name];
  const here = `### ${inner.join(" ")}\n\n\`\`\`text\n${renderHelp(program, { node, path })}\`\`\`\n`;
  return [here, ...(isGroup(node) ? node.commands.flatMap((child) => sections(program, child, inner)) : [])];
}
