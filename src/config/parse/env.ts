/** A variable that is not set, or a `${` that does not end; `offset` is its place in the original text. */
interface EnvProblem {
  readonly offset: number;
  readonly message: string;
}

/** The text after expansion, and the way back from its offsets to those of the original. */
export interface Expanded {
  readonly text: string;
  readonly problems: readonly EnvProblem[];
  readonly toOriginal: (offset: number) => number;
  /** The values that came from the environment, by the variable's name. */
  readonly values: ReadonlyMap<string, string>;
}

interface Edit {
  /** Offset of the replacement in the expanded text. */
  readonly start: number;
  readonly end: number;
  readonly originalStart: number;
  readonly originalEnd: number;
}

const REFERENCE = /^[ \t]*#.*$|\$(?:\$|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::-([^}]*))?\}|(\{))/gm;

/**
 * Replaces `$NAME`, `${NAME}` and `${NAME:-default}` in the whole text before it is parsed
 * (docs/configuration.md#environment-variables); `$$` is a dollar sign; a dollar sign before anything else stays. Lines that
 * begin with `#` are left alone, so that what is commented out needs no variables.
 */
export function expandEnv(text: string, env: Readonly<Record<string, string | undefined>>): Expanded {
  const problems: EnvProblem[] = [];
  const edits: Edit[] = [];
  const values = new Map<string, string>();
  let expanded = "";
  let at = 0;
  for (const match of text.matchAll(REFERENCE)) {
    const { index } = match;
    const [all, plain, braced, fallback, open] = match;
    if (!all.startsWith("$")) continue;
    if (open !== undefined)
      problems.push({
        offset: index,
        message: "${ needs a variable name and }, as in ${NAME} or ${NAME:-default}; write $$ for a dollar sign",
      });
    let value = "$";
    const name = plain ?? braced;
    if (name !== undefined) {
      const found = Object.hasOwn(env, name) ? env[name] : undefined;
      value = found ?? fallback ?? "";
      if (found !== undefined) values.set(name, found);
      else if (fallback === undefined)
        problems.push({
          offset: index,
          message: mayBeSecret(text, index, plain)
            ? "the name after this dollar sign is not that of an environment variable; write $$ for a dollar sign"
            : `environment variable ${name} is not set; set it, write \${${name}:-default}, or $$ for a dollar sign`,
        });
    }
    expanded += text.slice(at, index);
    const start = expanded.length;
    expanded += value;
    at = index + all.length;
    edits.push({ start, end: expanded.length, originalStart: index, originalEnd: at });
  }
  expanded += text.slice(at);
  return { text: expanded, problems, values, toOriginal: (offset) => back(edits, offset) };
}

/**
 * Whether an unset `$NAME` may be a part of a password or a hash, such as `$2y$05$qcjf…`: it follows a letter or a digit, or is not in upper
 * case. Messages do not show it then.
 */
function mayBeSecret(text: string, at: number, name: string | undefined): boolean {
  return name !== undefined && (/\w/.test(text.charAt(at - 1)) || name !== name.toUpperCase());
}

function back(edits: readonly Edit[], offset: number): number {
  const edit = edits.findLast((each) => each.start <= offset);
  if (edit === undefined) return offset;
  return offset < edit.end ? edit.originalStart : edit.originalEnd + (offset - edit.end);
}
