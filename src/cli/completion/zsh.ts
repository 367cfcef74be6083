import { type CompletionPoint, valuesOf } from "./words.ts";

/** A function file for zsh's completion system (`_tgctl` in a folder of `$fpath`). */
export function zshScript(program: string, points: readonly CompletionPoint[]): string {
  const functions = points.filter(({ aliased }) => !aliased).map((point) => pointFunction(program, point));
  return `#compdef ${program}
# zsh completion of ${program}

${functions.join("\n\n")}

if [ "$funcstack[1]" = "_${program}" ]; then
  _${program} "$@"
else
  compdef _${program} ${program}
fi
`;
}

function functionName(program: string, path: readonly string[]): string {
  return ["", program, ...path].join("_");
}

function pointFunction(program: string, point: CompletionPoint): string {
  const name = functionName(program, point.path);
  if (point.subcommands.length === 0) {
    const argument = point.words.length === 0 ? [] : [`'1:argument:(${point.words.join(" ")})'`];
    return `${name}() {\n  _arguments ${[...optionSpecs(point), ...argument].join(" \\\n    ")}\n}`;
  }
  const entries = point.subcommands.map(({ name: word, summary }) => `    ${quote(`${word}:${summary}`)}`);
  const cases = point.subcommands.map(({ name: word, aliases, canonical }) => {
    const target = functionName(program, canonical);
    return `        ${[word, ...aliases].join("|")}) ${target} ;;`;
  });
  return `${name}() {
  local state line
  local -a commands=(
${entries.join("\n")}
  )
  _arguments -C ${[...optionSpecs(point), "'1: :->command'", "'*:: :->rest'"].join(" \\\n    ")}
  case $state in
    command) _describe command commands ;;
    rest)
      case $line[1] in
${cases.join("\n")}
      esac
      ;;
  esac
}`;
}

function optionSpecs(point: CompletionPoint): string[] {
  return point.options.map(({ name, spec }) => {
    const summary = spec.summary.replace(/[[\]:]/g, "\\$&");
    const repeat = spec.type === "list" ? "*" : "";
    const values = valuesOf(spec);
    const action = values === "file" ? "_files" : values === undefined ? "" : `(${values.join(" ")})`;
    const value = spec.type === "switch" ? "" : `:${spec.value}:${action}`;
    const long = quote(`${repeat}--${name}[${summary}]${value}`);
    return spec.short === undefined ? long : `${long} ${quote(`${repeat}-${spec.short}[${summary}]${value}`)}`;
  });
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
