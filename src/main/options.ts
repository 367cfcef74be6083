import { parseArgs } from "node:util";
import { messageOf } from "../base/errors.ts";
import { suggest } from "../base/suggest.ts";
import { isReadOnce } from "../config/parse/inputs.ts";
import { ExpectedError } from "./expected-error.ts";

/** What the command line of `tracegate` asks for. */
export type Options =
  /** With neither `config` nor `file`: the default configuration. */
  | {
      readonly command: "run";
      readonly config?: string;
      readonly file?: string;
      readonly validateOnly: boolean;
      /** Ends with the process that started it, which waits for it. */
      readonly supervised: boolean;
    }
  | ({ readonly command: "oneshot" } & OneshotOptions)
  | { readonly command: "migrate"; readonly file: string }
  | { readonly command: "check"; readonly file: string; readonly json: boolean }
  /** Without `file`: its own configuration. */
  | { readonly command: "quickstart"; readonly file?: string }
  | { readonly command: "version"; readonly long: boolean }
  | { readonly command: "help" };

/** `program` and its arguments, which run beside a gateway on `config` or `file`. */
export interface OneshotOptions {
  readonly config?: string;
  readonly file?: string;
  readonly output?: string;
  readonly program: readonly string[];
}

/** A command line that cannot be understood; the message says what to change. Exit code 2. */
export class UsageError extends ExpectedError {
  override readonly exitCode = 2;
}

export const HELP = `tracegate: a gateway that shows step by step what it did with one request

Usage:
  tracegate -f FILE              run on a configuration file; reloads it when it changes, or on SIGHUP
  tracegate -c CONFIG            run on a configuration given as text; never reloaded
  tracegate                      run on /config/config.yaml or, without a folder /config, on
                                 ~/.config/tracegate/config.yaml; creates the file if there is none
  tracegate check -f FILE        check a configuration file and print every problem
  tracegate oneshot -f FILE -- COMMAND...
                                 run a command beside a gateway that starts before it and stops after it
  tracegate migrate -f FILE      rewrite settings that have moved, in place
  tracegate quickstart [-f FILE] run examples/quickstart.yaml, or FILE, with an echo server on port 9099

Options:
  -f, --file FILE      configuration file; - reads standard input once
  -c, --config CONFIG  configuration as text
      --validate-only  check the configuration as a start would, then exit
      --json           (check) print the problems as JSON
      --output FILE    (oneshot) write the gateway's log to a file instead of standard error
  -V                   print the version
      --version        print build information as JSON
  -h, --help           print this help

Exit codes: 0 ok, 1 configuration or start failed, 2 wrong usage; oneshot: that of the command.
Watch a request: tgctl proxy trace --local
`;

/** Parses the arguments after the program's name. Throws UsageError. */
export function parseOptions(args: readonly string[]): Options {
  const end = args.indexOf("--");
  const { values, positionals } = parse(end < 0 ? args : args.slice(0, end));
  if (values.help === true) return { command: "help" };
  if (values.version === true || values.V === true) return { command: "version", long: values.version === true };
  const [command, ...rest] = positionals;
  const program = end < 0 ? [] : args.slice(end + 1);
  const unexpected = rest[0] ?? (command === "oneshot" ? undefined : program[0]);
  if (unexpected !== undefined) throw new UsageError(`unexpected argument: ${unexpected}${hint(command, unexpected)}`);
  if (values.json === true && command !== "check")
    throw new UsageError("--json belongs to tracegate check; the log is JSON with LOG_FORMAT=json");
  if (values.output !== undefined && command !== "oneshot")
    throw new UsageError("--output belongs to tracegate oneshot; the log goes to standard output");
  if (command === "check" || command === "migrate") {
    if (values.file === undefined) throw new UsageError(`${command} needs a file: tracegate ${command} -f FILE`);
    return command === "check"
      ? { command, file: values.file, json: values.json === true }
      : { command, file: rewritable(values.file) };
  }
  if (command === "quickstart") {
    if (values.config !== undefined) throw new UsageError("quickstart takes a file: tracegate quickstart -f FILE");
    if (values.file === "") throw new UsageError("-f needs a file: tracegate quickstart -f FILE");
    return { command: "quickstart", ...(values.file !== undefined && { file: values.file }) };
  }
  if (command !== undefined && command !== "oneshot")
    throw new UsageError(`unknown command: ${command}; ${meant(command)}`);
  if (values.config !== undefined && values.file !== undefined) throw new UsageError("only one of --config or --file");
  if (values.file === "") throw new UsageError("-f needs a file: tracegate -f FILE");
  const source = {
    ...(values.config !== undefined && { config: values.config }),
    ...(values.file !== undefined && { file: values.file }),
  };
  const validateOnly = values["validate-only"] === true;
  if (command === undefined) return { command: "run", validateOnly, supervised: values.supervised === true, ...source };
  if (validateOnly) throw new UsageError("--validate-only starts nothing; leave it out or use tracegate check");
  if (program.length === 0) throw new UsageError(`oneshot needs a command behind --: ${ONESHOT_USAGE}`);
  if (values.config === undefined && values.file === undefined)
    throw new UsageError(`oneshot needs a configuration: ${ONESHOT_USAGE}`);
  if (values.file !== undefined && isReadOnce(values.file))
    throw new UsageError(
      "oneshot leaves standard input to the command; write the configuration to a file, or give it as -c",
    );
  return { command, program, ...source, ...(values.output !== undefined && { output: values.output }) };
}

const ONESHOT_USAGE = "tracegate oneshot -f FILE -- COMMAND...";

const COMMANDS = ["check", "oneshot", "migrate", "quickstart"];

/** The command that was probably meant, or what to do with a file. */
function meant(word: string): string {
  if (/\.(ya?ml|json)$/.test(word)) return `for a file write -f ${word}`;
  const near = suggest(word, COMMANDS);
  return near === undefined ? "see tracegate --help" : `did you mean ${near}?`;
}

function hint(command: string | undefined, argument: string): string {
  if (command !== undefined && command !== "oneshot" && COMMANDS.includes(command)) return `; write -f ${argument}`;
  return command === "oneshot" ? `; write -- before the command: ${ONESHOT_USAGE}` : "";
}

function rewritable(file: string): string {
  if (isReadOnce(file)) throw new UsageError(`migrate rewrites a file, which ${file} is not`);
  return file;
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
        output: { type: "string" },
        supervised: { type: "boolean" },
        V: { type: "boolean", short: "V" },
        version: { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
    });
  } catch (error) {
    throw new UsageError(explain(messageOf(error)));
  }
}

/** The parser says `Option '-f, --file <value>' argument missing` or that it is ambiguous, without saying what to write. */
function explain(message: string): string {
  const option = /^Option '(?:-\w, )?--(file|config|output)\b.* argument (?:missing|is ambiguous)/.exec(message)?.[1];
  if (option === "file") return "-f needs a file: tracegate -f FILE";
  if (option === "output") return `--output needs a file: ${ONESHOT_USAGE}`;
  if (option === "config") return "-c needs a configuration as text: tracegate -c CONFIG";
  // What it says about arguments that begin with a dash is of no help here: there are none.
  return `${message.replace(/\. To specify a positional argument .*/s, "")}; see tracegate --help`;
}
