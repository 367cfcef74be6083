import { type Document, isScalar, visit, type YAMLError } from "yaml";
import { messageOf } from "../../base/errors.ts";

/** One problem of the text as YAML; the offset is in the expanded text. */
interface SyntaxProblem {
  readonly offset: number;
  readonly message: string;
}

/** A line that is indented further has its caret there. */
const MAX_INDENT = 200;

/** Rewords errors of the parser so that they say how to correct them. Of several with one cause, only the first is kept. */
export function syntaxProblems(document: Document.Parsed, text: string): SyntaxProblem[] {
  const problems: SyntaxProblem[] = [];
  // After an error, the parser often reports the same place again.
  let lost = false;
  for (const error of [...document.errors, ...document.warnings]) {
    const harmless = error.code === "DUPLICATE_KEY" || error.code === "TAG_RESOLVE_FAILED";
    if (lost && !harmless) continue;
    lost ||= !harmless;
    const mistake = mistakeOf(error);
    problems.push({ offset: offsetOf(error, mistake, document, text), message: WORDS[mistake] });
  }
  return problems;
}

/** Why a parsed document has no values: an alias without an anchor, or too many aliases. */
export function aliasProblem(document: Document.Parsed, error: unknown): SyntaxProblem {
  let first: number | undefined;
  let unresolved: SyntaxProblem | undefined;
  visit(document, {
    Alias(_key, node) {
      const offset = node.range?.[0] ?? 0;
      first ??= offset;
      if (node.resolve(document) === undefined) unresolved ??= { offset, message: unknownAlias(node.source) };
    },
  });
  if (unresolved !== undefined) return unresolved;
  if (error instanceof ReferenceError)
    return { offset: first ?? 0, message: "the aliases expand to too many values; write the values out" };
  return { offset: 0, message: messageOf(error) };
}

/** `*.example.com` without quotes is an alias to YAML. */
function unknownAlias(name: string): string {
  if (name.startsWith(".")) return `a leading asterisk is an alias in YAML; quote the text: "*${name}"`;
  return `unknown anchor &${name}; an anchor must come before its aliases`;
}

/** Offsets of keys that JavaScript objects cannot hold as plain data. */
export function unusableKeys(document: Document.Parsed): SyntaxProblem[] {
  const problems: SyntaxProblem[] = [];
  visit(document, {
    Pair(_key, pair) {
      if (isScalar(pair.key) && pair.key.value === "__proto__")
        problems.push({ offset: pair.key.range?.[0] ?? 0, message: "__proto__ cannot be a name; choose another" });
    },
  });
  return problems;
}

/** What went wrong: a code of the library, or one of the mistakes that it puts under MISSING_CHAR. */
type Mistake = YAMLError["code"] | "UNCLOSED_QUOTE" | "UNCLOSED_BRACKET" | "NO_COMMA" | "ITEM_WITHOUT_DASH";

const INDENTATION = "is the indentation right?";

/** For every code of the library, which the compiler requires. */
const WORDS: Readonly<Record<Mistake, string>> = {
  ALIAS_PROPS: "not valid YAML: an alias has no anchor or tag of its own; remove it",
  BAD_ALIAS: "not valid YAML: an anchor or alias without a usable name; quote the text if & or * is part of it",
  BAD_COLLECTION_TYPE: "not valid YAML: the tag does not fit what follows; remove the tag",
  BAD_DIRECTIVE: "not valid YAML: a line that begins with % is a directive; quote the text if it is a value",
  BAD_DQ_ESCAPE:
    "not valid YAML: this is not a valid escape in double quotes; write \\\\ for a backslash, or use single quotes",
  BAD_INDENT: `not valid YAML: this line is not indented like the lines that it belongs to; ${INDENTATION}`,
  BAD_PROP_ORDER: "not valid YAML: an anchor or tag comes after the - or : of its value, not before",
  BAD_SCALAR_START: "not valid YAML: a text cannot begin with this character; quote the text",
  BLOCK_AS_IMPLICIT_KEY: `not valid YAML: a list or an object where a name is expected, or a second colon on the line; ${INDENTATION} A text with a colon needs quotes`,
  BLOCK_IN_FLOW: "not valid YAML: entries between [ ] or { } are separated by commas; is a comma missing after this?",
  DUPLICATE_KEY: "duplicate key; keep one of them",
  IMPOSSIBLE: "not valid YAML",
  ITEM_WITHOUT_DASH: `not valid YAML: this line belongs neither to the list above nor to what holds it; ${INDENTATION}`,
  KEY_OVER_1024_CHARS: "not valid YAML: a name of more than 1,024 characters; is a quote or a line break missing?",
  MISSING_CHAR:
    "not valid YAML: something is missing before this: the colon after a name, or a space in front of # or after a colon",
  MULTILINE_IMPLICIT_KEY: `not valid YAML: a name that continues on the next line; is a colon missing, or ${INDENTATION}`,
  MULTIPLE_ANCHORS: "not valid YAML: a value can have only one anchor; remove the others",
  MULTIPLE_DOCS: "a second YAML document begins here; a configuration is a single document, remove the line ---",
  MULTIPLE_TAGS: "not valid YAML: a value can have only one tag, and needs none here; remove them",
  NO_COMMA: "not valid YAML: a comma is missing before this, or a colon with a space after it",
  NON_STRING_KEY: "not valid YAML: a name must be a text; quote it",
  RESOURCE_EXHAUSTION: "lists and objects are nested too deeply here",
  TAB_AS_INDENT: "a tab at the beginning of a line; indent with spaces",
  TAG_RESOLVE_FAILED:
    "this is a tag, because it begins with !; tags have no meaning here, remove it, or quote the text",
  UNCLOSED_BRACKET: "not valid YAML: this bracket is never closed",
  UNCLOSED_QUOTE: "not valid YAML: this quote is never closed",
  UNEXPECTED_TOKEN: "not valid YAML: this does not belong here; remove it, or quote the text that it is part of",
};

/** The library has one code, MISSING_CHAR, for a dozen mistakes, and a fixed message for each: these are told apart by it. */
function mistakeOf({ code, message }: YAMLError): Mistake {
  if (/ must .*end with a [}\]]$/.test(message)) return "UNCLOSED_BRACKET";
  if (code !== "MISSING_CHAR") return code;
  if (message.startsWith("Missing closing ")) return "UNCLOSED_QUOTE";
  if (/^Missing ,| after : in flow /.test(message)) return "NO_COMMA";
  return message.startsWith("Sequence item without - indicator") ? "ITEM_WITHOUT_DASH" : code;
}

/**
 * A quote or bracket that is never closed is reported where it opens, not where the text goes on, and a line with the wrong indentation
 * where its text begins.
 */
function offsetOf({ pos: [start, end] }: YAMLError, mistake: Mistake, document: Document.Parsed, text: string): number {
  if (mistake === "BAD_INDENT") return start + (/^ */.exec(text.slice(start, end + MAX_INDENT))?.[0].length ?? 0);
  if (mistake !== "UNCLOSED_QUOTE" && mistake !== "UNCLOSED_BRACKET") return start;
  // The last one that opens before: those inside of it are closed, or reported themselves.
  let opened = start;
  visit(document, {
    Scalar(_key, node) {
      const quoted = node.type === "QUOTE_DOUBLE" || node.type === "QUOTE_SINGLE";
      if (mistake === "UNCLOSED_QUOTE" && quoted && node.range != null && node.range[0] <= start)
        opened = node.range[0];
    },
    Collection(_key, node) {
      const isOpen = node.flow === true && node.range != null && node.range[0] <= start && node.range[1] >= start;
      if (mistake === "UNCLOSED_BRACKET" && isOpen && node.range != null) opened = node.range[0];
    },
  });
  return opened;
}
