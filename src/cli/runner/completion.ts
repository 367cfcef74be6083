import { fallbackOf, isGroup, type OptionSpec, optionsOf, type Program, shortcutsOf } from "./define-command.ts";
import { walk } from "./parse.ts";

/**
 * Shell completion. The scripts contain no commands, so they stay valid after an upgrade: they run `<program> __complete <words…>`, where the last word is
 * the one that is being typed, and read a candidate per line: the word and, after a tab, what it means. The line `:files` makes
 * the shell complete file names.
 */

interface Candidate {
  readonly word: string;
  readonly summary: string;
}

const FILES = ":files";

/** The candidates for the last of the words, as the scripts read them. Never throws: a wrong command line has none. */
export function complete(program: Program, words: readonly string[]): string {
  const current = words.at(-1) ?? "";
  const candidates = candidatesAt(program, words.slice(0, -1), current);
  return candidates === FILES
    ? `${FILES}\n`
    : candidates
        .filter(({ word }) => word.startsWith(current))
        .map(({ word, summary }) => `${word}\t${summary}\n`)
        .join("");
}

function candidatesAt(
  program: Program,
  before: readonly string[],
  current: string,
): readonly Candidate[] | typeof FILES {
  // What follows -- belongs to another program.
  if (before.includes("--")) return [];
  const { node, words, operand } = walk(program, before);
  // There are no candidates after an unknown name.
  if (isGroup(node) && operand !== undefined) return [];
  const command = isGroup(node) ? fallbackOf(node) : node;
  const options = command === undefined ? [] : optionsOf(command);
  const previous = words.at(-1);
  const spec = options.find(
    ([name, { short }]) => previous === `--${name}` || (short && previous === `-${short}`),
  )?.[1];
  if (spec !== undefined && spec.type !== "switch") return valuesOf(spec);
  if (current.startsWith("-")) return optionCandidates(options, words);
  if (!isGroup(node) && node.argument?.completes === "file") return FILES;
  if (!isGroup(node)) return (node.argument?.choices ?? []).map((word) => ({ word, summary: "" }));
  return [...node.commands, ...(shortcutsOf(node)?.nodes ?? [])].map(({ name, summary }) => ({ word: name, summary }));
}

function optionCandidates(
  options: readonly (readonly [string, OptionSpec])[],
  words: readonly string[],
): readonly Candidate[] {
  return options
    .filter(([name, spec]) => spec.type === "list" || !words.includes(`--${name}`))
    .map(([name, { summary }]) => ({ word: `--${name}`, summary }));
}

function valuesOf(spec: OptionSpec): readonly Candidate[] | typeof FILES {
  if (spec.type !== "text" && spec.type !== "list") return [];
  if (spec.completes === "file") return FILES;
  return (spec.type === "text" ? (spec.choices ?? []) : []).map((word) => ({ word, summary: "" }));
}

const SCRIPTS = {
  bash: (program: string) => `# bash completion of ${program}; load it with: . <(${program} completion bash)
_${program}() {
  local word summary
  COMPREPLY=()
  while IFS=$'\\t' read -r word summary; do
    if [ "$word" = ${FILES} ]; then
      while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}")
    else
      COMPREPLY+=("$word")
    fi
  done < <("\${COMP_WORDS[0]}" __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _${program} ${program}
`,
  zsh: (program: string) => `#compdef ${program}
# zsh completion of ${program}
_${program}() {
  local word summary
  local -a candidates
  while IFS=$'\\t' read -r word summary; do
    if [ "$word" = ${FILES} ]; then
      _files
      return
    fi
    candidates+=("\${word//:/\\\\:}:$summary")
  done < <("\${words[1]}" __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)
  _describe ${program} candidates
}

if [ "$funcstack[1]" = "_${program}" ]; then
  _${program} "$@"
else
  compdef _${program} ${program}
fi
`,
  fish: (program: string) => `# fish completion of ${program}
function __${program}_complete
    set -l words (commandline -opc)
    set -l candidates ($words[1] __complete $words[2..] (commandline -ct) 2>/dev/null)
    if test "$candidates" = ${FILES}
        __fish_complete_path (commandline -ct)
    else
        printf '%s\\n' $candidates
    end
end

complete -c ${program} -f -a '(__${program}_complete)'
`,
} as const;

export type Shell = keyof typeof SCRIPTS;
export const SHELLS = Object.keys(SCRIPTS) as readonly Shell[];

/** The script that makes a shell complete the program's command lines. */
export function completionScript(shell: Shell, program: string): string {
  return SCRIPTS[shell](program);
}
