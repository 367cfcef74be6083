import { parseArgs } from "node:util";

/** What the command line of `tracegate` asks for. */
export type Options =
  /** With neither `config` nor `file`: the default configuration. */
  | { readonly command: "run"; readonly config?: string; readonly file?: string; readonly validateOnly: boolean }
  | { readonly command: "check"; readonly file: string; readonly json: boolean }
  | { readonly command: "quickstart" }
  | { readonly command: "version"; readonly long: boolean }
  | { readonly command: "help" };

/** A command line that cannot be understood; the message says what to change. Exit code 2. */
export class UsageError extends Error {}

export const HELP = `tracegate: a gateway that shows step by step what it did with one request

Usage:
  tracegate -f FILE              run on a configuration file; reloads it when it changes
  tracegate -c CONFIG            run on a configuration given as text; never reloaded
  tracegate                      run on /config/config.yaml or, without a folder /config, on
                                 ~/.config/tracegate/config.yaml; creates the file if there is none
  tracegate check -f FILE        check a configuration file and print every problem
  tracegate quickstart           run examples/quickstart.yaml with an echo upstream

Options:
  -f, --file FILE      configuration file; - reads standard input once
  -c, --config CONFIG  configuration as text
      --validate-only  check the configuration as a start would, then exit
      --json           (check) print the problems as JSON
  -V                   print the version
      --version        print build information as JSON
  -h, --help           print this help

Exit codes: 0 ok, 1 configuration or start failed, 2 wrong usage.
Watch a request: tgctl proxy trace --local
`;

/** Parses the arguments after the program's name. Throws UsageError. */
export function parseOptions(args: readonly string[]): Options {
  const { values, positionals } = parse(args);
  if (values.help === true) return { command: "help" };
  if (values.version === true || values.V === true) return { command: "version", long: values.version === true };
  const [command, ...rest] = positionals;
  if (rest.length > 0)
    throw new UsageError(`unexpected argument: ${rest[0]}${command === "check" ? `; write -f ${rest[0]}` : ""}`);
  if (values.json === true && command !== "check")
    throw new UsageError("--json belongs to tracegate check; the log is JSON with LOG_FORMAT=json");
  if (command === "check") {
    if (values.file === undefined) throw new UsageError("check needs a file: tracegate check -f FILE");
    return { command: "check", file: values.file, json: values.json === true };
  }
  if (command === "quickstart") {
    if (values.file !== undefined || values.config !== undefined)
      throw new UsageError("quickstart takes no options; it has a configuration of its own");
    return { command: "quickstart" };
  }
  if (command !== undefined) throw new UsageError(`unknown command: ${command}; see tracegate --help`);
  if (values.config !== undefined && values.file !== undefined) throw new UsageError("only one of --config or --file");
  if (values.file === "") throw new UsageError("-f needs a file: tracegate -f FILE");
  return {
    command: "run",
    validateOnly: values["validate-only"] === true,
    ...(values.config !== undefined && { config: values.config }),
    ...(values.file !== undefined && { file: values.file }),
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        config: { type: "string", short: "c" },
        file: { type: "string", short: "f" },
        "validate-only": { type: "boolean" },
        json: { type: "boolean" },
        V: { type: "boolean", short: "V" },
        version: { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
    });
  } catch (error) {
    throw new UsageError(explain(error instanceof Error ? error.message : String(error)));
  }
}

/** The parser says `Option '-f, --file <value>' argument missing` or that it is ambiguous, without saying what to write. */
function explain(message: string): string {
  const option = /^Option '(?:-\w, )?--(file|config)\b.* argument (?:missing|is ambiguous)/.exec(message)?.[1];
  if (option === "file") return "-f needs a file: tracegate -f FILE";
  if (option === "config") return "-c needs a configuration as text: tracegate -c CONFIG";
  return `${message}; see tracegate --help`;
}
