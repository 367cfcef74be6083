/** The exit codes of `tgctl`; scripts may rely on them. `docs/tgctl.md` and `tgctl --help` show this table. */
export const EXIT_CODES = [
  { code: 0, name: "ok", meaning: "success" },
  { code: 1, name: "failure", meaning: "the command ran and failed" },
  { code: 2, name: "usage", meaning: "the command line is wrong" },
  { code: 3, name: "unreachable", meaning: "no proxy, or no cluster, can be reached" },
  { code: 129, name: "hangup", meaning: "the terminal was closed (SIGHUP)" },
  { code: 130, name: "interrupted", meaning: "interrupted by Ctrl-C (SIGINT)" },
  { code: 143, name: "terminated", meaning: "terminated (SIGTERM)" },
] as const;

/** Errors that only a bug throws: their stack is more helpful than the message. */
const BUGS = [TypeError, RangeError, ReferenceError];

/** The kinds of failure of a command; signals are handled by the runner. */
type Failure = "failure" | "usage" | "unreachable";

/**
 * The one error that commands throw. `message` says what went wrong, `why` gives the cause where it is not obvious, and
 * `hint` says what to do; each is a sentence or a line without a trailing period.
 */
export class CliError extends Error {
  readonly kind: Failure;
  readonly why: string | undefined;
  readonly hint: string | undefined;

  constructor(kind: Failure, message: string, more: { why?: string; hint?: string; cause?: unknown } = {}) {
    super(message, { cause: more.cause });
    this.kind = kind;
    this.why = more.why;
    this.hint = more.hint;
  }

  /** Anything thrown, as a `CliError`: anything else becomes a plain failure. */
  static from(thrown: unknown): CliError {
    if (thrown instanceof CliError) return thrown;
    const bug = BUGS.some((kind) => thrown instanceof kind) ? (thrown as Error).stack : undefined;
    return new CliError("failure", bug ?? describe(thrown), { cause: thrown });
  }
}

/** A usage error (exit code 2). */
export function usage(message: string, hint?: string): CliError {
  return new CliError("usage", message, hint === undefined ? {} : { hint });
}

/** The text of anything thrown; for an error without a message (an aggregate of connection errors) its code. */
export function describe(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  if (thrown.message !== "") return thrown.message;
  return "code" in thrown && typeof thrown.code === "string" ? thrown.code : thrown.name;
}

/** The exit code of a failure. */
export function exitCode(kind: Failure): number {
  return EXIT_CODES.find((entry) => entry.name === kind)?.code ?? 1;
}

/** The lines a person sees on stderr; `prefix` begins the first. */
export function renderError(error: CliError, prefix: string): string {
  const lines = [`${prefix}: ${error.message}`];
  if (error.why !== undefined) lines.push(`Why: ${error.why}`);
  if (error.hint !== undefined) lines.push(`Try: ${error.hint}`);
  return `${lines.join("\n")}\n`;
}

/** The same as one JSON line, for `--json`. */
export function renderErrorJson(error: CliError): string {
  const { message, why, hint, kind } = error;
  return `${JSON.stringify({ error: { kind, exitCode: exitCode(kind), message, why, hint } })}\n`;
}
