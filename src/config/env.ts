/** A variable that is not set, or a `${` that does not end; `offset` is its place in the original text. */
export interface EnvProblem {
  readonly offset: number;
  readonly message: string;
}

/** The text after expansion, and the way back from its offsets to those of the original. */
export interface Expanded {
  readonly text: string;
  readonly problems: readonly EnvProblem[];
  readonly toOriginal: (offset: number) => number;
}

interface Edit {
  /** Offset in the expanded text behind the replacement. */
  readonly end: number;
  readonly start: number;
  readonly originalStart: number;
  readonly originalEnd: number;
}

const REFERENCE = /\$(?:\$|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::-([^}]*))?\}|(\{))/g;
const SCHEMA_COMMENT = /^#\s*yaml-language-server:.*$/gm;

/**
 * Replaces `$NAME`, `${NAME}` and `${NAME:-default}` in the whole text before it is parsed (reference 1.1); `$$` is a
 * dollar sign; a dollar sign before anything else stays. Comments that name an editor's schema are left alone.
 */
export function expandEnv(text: string, env: Readonly<Record<string, string | undefined>>): Expanded {
  const comments = [...text.matchAll(SCHEMA_COMMENT)].map((match) => [match.index, match.index + match[0].length]);
  const problems: EnvProblem[] = [];
  const edits: Edit[] = [];
  let expanded = "";
  let at = 0;
  for (const match of text.matchAll(REFERENCE)) {
    const { index } = match;
    if (comments.some(([start = 0, end = 0]) => index >= start && index < end)) continue;
    const [all, plain, braced, fallback, open] = match;
    let value = "$";
    if (open !== undefined)
      problems.push({ offset: index, message: "${ without a variable name and }; write $$ for a dollar sign" });
    const name = plain ?? braced;
    if (name !== undefined) {
      const found = env[name];
      value = found ?? fallback ?? "";
      if (found === undefined && fallback === undefined)
        problems.push({
          offset: index,
          message: `environment variable ${name} is not set; set it, write \${${name}:-default}, or $$ for a dollar sign`,
        });
    }
    expanded += text.slice(at, index);
    const start = expanded.length;
    expanded += value;
    at = index + all.length;
    edits.push({ start, end: expanded.length, originalStart: index, originalEnd: at });
  }
  expanded += text.slice(at);
  return { text: expanded, problems, toOriginal: (offset) => back(edits, offset) };
}

function back(edits: readonly Edit[], offset: number): number {
  const edit = edits.findLast((each) => each.start <= offset);
  if (edit === undefined) return offset;
  return offset < edit.end ? edit.originalStart : edit.originalEnd + (offset - edit.end);
}
