import { LINTS } from "../../src/translation/problems/lint-table.ts";

/** docs/lints.md */
export function lintPage(): string {
  const sections = Object.entries(LINTS).map(
    ([code, { title, severity, meaning, remedy }]) =>
      `## ${code}\n\n${title} (${severity}). ${meaning}\n\nRemedy: ${remedy}.`,
  );
  return `# Lints

What \`tracegate check\` finds in a valid configuration that is most likely not intended. A finding has a code, a position, a text and
often the places that explain it. Warnings do not make a configuration invalid; with \`--strict\` they are errors. Of a note the effect is often
intended. [check.md](check.md) explains the command.

${sections.join("\n\n")}
`;
}
