import { LINTS } from "../../src/translation/problems/lint-table.ts";

/** docs/lints.md */
export function lintPage(): string {
  const sections = Object.entries(LINTS).map(
    ([code, { title, meaning, remedy, ...more }]) =>
      `## ${code}\n\n${title} (${severity(more)}). ${meaning}\n\n${remedyText(remedy)}`,
  );
  return `# Lints

A lint finds what is valid, but most likely not intended. \`tracegate check\` looks for it in a file: each finding has a code, a position, a
text and often the places that explain it. Warnings do not make a configuration invalid; with \`--strict\` they are errors. A note is about
an effect that is often intended. [check.md](check.md) explains the command.

On Kubernetes, the controller looks for the same in objects and reports it in the condition \`tracegate.dev/Findings\` of their status;
[\`tgctl check gateway/NAME\`](tgctl.md) lists these findings. Problems that Kubernetes itself reports or prevents are not among them.

${sections.join("\n\n")}
`;
}

function severity({ isNote }: { readonly isNote?: unknown }): string {
  return isNote === undefined ? "warning" : isNote === true ? "note" : "warning or note";
}

function remedyText({ file, objects }: (typeof LINTS)[keyof typeof LINTS]["remedy"]): string {
  const inFile = general(file);
  if (typeof objects === "object" && "instead" in objects)
    return `Remedy: ${inFile}. On Kubernetes, ${objects.instead}.`;
  const inObjects = general(objects);
  return `Remedy: ${inFile}.${inObjects === inFile ? "" : ` In objects of Kubernetes: ${inObjects}.`}`;
}

function general(remedy: string | readonly [string, unknown]): string {
  return typeof remedy === "string" ? remedy : remedy[0];
}
