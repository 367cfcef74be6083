import { usage } from "../runner/errors.ts";

/** `--level` of the log commands: `levels` are those that the server knows. */
export function levelOption(levels: readonly string[], summary: string) {
  return { type: "text", value: "level", choices: levels, invalid: unknownLevel, summary } as const;
}

/** The directives `<name>=<level>` of `--set`. @throws CliError for one of another shape */
export function readDirectives(
  { level, set }: { readonly level: string | undefined; readonly set: readonly string[] },
  what: string,
  levels: readonly string[],
  example: string,
): readonly (readonly [name: string, level: string])[] {
  if (level !== undefined && set.length > 0) throw usage("--level and --set are mutually exclusive");
  return set.map((directive) => {
    const [name = "", wanted = "", ...more] = directive.split("=");
    if (name === "" || wanted === "" || more.length > 0)
      throw usage(`invalid --set value "${directive}": expected ${what}=level`, example);
    if (!levels.includes(wanted)) throw usage(unknownLevel(wanted), `one of ${levels.join(", ")}`);
    return [name, wanted];
  });
}

export function unknownLevel(level: string): string {
  return `unknown level "${level}"`;
}
