import { type CompletionPoint, valuesOf } from "./words.ts";

/** A script for bash 4 and later; it needs nothing but bash itself. */
export function bashScript(program: string, points: readonly CompletionPoint[]): string {
  return `# bash completion of ${program}; load it with: . <(${program} completion bash)
_${program}() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} path="" word
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in
      --) return ;;
      -*) ;;
      *) case " $(_${program}_words "$path" subcommands) " in *" $word "*) path="$path $word" ;; esac ;;
    esac
  done
  case $previous in
    -*)
      local values
      values=$(_${program}_values "$path" "$previous")
      case $values in
        file) mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;
        any) return ;;
        ?*) mapfile -t COMPREPLY < <(compgen -W "$values" -- "$current"); return ;;
      esac
      ;;
  esac
  case $current in
    -*) mapfile -t COMPREPLY < <(compgen -W "$(_${program}_words "$path" options)" -- "$current") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$(_${program}_words "$path" words)" -- "$current") ;;
  esac
}

# _${program}_words PATH KIND: what can follow; "words" is what is offered, "subcommands" what may extend the path.
_${program}_words() {
  case "$1/$2" in
${points.map(wordCases).join("\n")}
  esac
}

# _${program}_values PATH OPTION: the values of an option, "file" or "any"; nothing for a switch.
_${program}_values() {
  case "$1/$2" in
${points.flatMap(valueCases).join("\n")}
  esac
}

complete -F _${program} ${program}
`;
}

/** Paths begin with a space: `" proxy trace"`; the root is empty. */
function pathText(point: CompletionPoint): string {
  return point.path.map((name) => ` ${name}`).join("");
}

function wordCases(point: CompletionPoint): string {
  const names = point.subcommands.map(({ name }) => name);
  const kinds = {
    words: [...names, ...point.words],
    // Aliases extend the path without being offered.
    subcommands: [...names, ...point.subcommands.flatMap(({ aliases }) => aliases)],
    options: point.options.map(({ name }) => `--${name}`),
  };
  return Object.entries(kinds)
    .filter(([, words]) => words.length > 0)
    .map(([kind, words]) => `    "${pathText(point)}/${kind}") echo "${words.join(" ")}" ;;`)
    .join("\n");
}

function valueCases(point: CompletionPoint): string[] {
  const path = pathText(point);
  return point.options
    .filter(({ spec }) => spec.type !== "switch")
    .map(({ name, spec }) => {
      const values = valuesOf(spec) ?? "any";
      const flags = [`"${path}/--${name}"`, ...(spec.short === undefined ? [] : [`"${path}/-${spec.short}"`])];
      return `    ${flags.join(" | ")}) echo "${typeof values === "string" ? values : values.join(" ")}" ;;`;
    });
}
