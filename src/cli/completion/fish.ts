import { type CompletionPoint, valuesOf } from "./words.ts";

/** A script for fish 3 and later. */
export function fishScript(program: string, points: readonly CompletionPoint[]): string {
  const names = points.flatMap((point) => point.subcommands.flatMap(({ name, aliases }) => [name, ...aliases]));
  return `# fish completion of ${program}

# Succeeds when the subcommands on the command line are exactly the arguments.
function __${program}_at
    set -l words
    for word in (commandline -opc)[2..]
        if test "$word" = --
            return 1
        end
        if contains -- $word ${[...new Set(names)].join(" ")}
            set -a words $word
        end
    end
    test "$words" = "$argv"
end

complete -c ${program} -f
${points.flatMap((point) => pointLines(program, point)).join("\n")}
`;
}

function pointLines(program: string, point: CompletionPoint): string[] {
  const start = `complete -c ${program} -n ${quote([`__${program}_at`, ...point.path].join(" "))}`;
  return [
    ...point.subcommands.map(({ name, summary }) => `${start} -a ${name} -d ${quote(summary)}`),
    ...(point.words.length === 0 ? [] : [`${start} -a ${quote(point.words.join(" "))}`]),
    ...point.options.map(({ name, spec }) => {
      const short = spec.short === undefined ? "" : ` -s ${spec.short}`;
      return `${start} -l ${name}${short}${valueFlags(valuesOf(spec), spec.type === "switch")} -d ${quote(spec.summary)}`;
    }),
  ];
}

function valueFlags(values: ReturnType<typeof valuesOf>, isSwitch: boolean): string {
  if (isSwitch) return "";
  if (values === "file") return " -rF";
  return values === undefined ? " -x" : ` -x -a ${quote(values.join(" "))}`;
}

function quote(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
