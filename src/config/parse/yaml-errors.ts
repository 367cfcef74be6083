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
    problems.push({ offset: offsetOf(error, document, text), message: inWords(error) });
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

/**
 * What went wrong. The library has one code, MISSING_CHAR, for a dozen mistakes, and a fixed message for each: these two are told
 * apart by it.
 */
function mistakeOf({ code, message }: YAMLError): YAMLError["code"] | "UNCLOSED_QUOTE" | "ITEM_WITHOUT_DASH" {
  if (code !== "MISSING_CHAR") return code;
  if (message.startsWith("Missing closing ")) return "UNCLOSED_QUOTE";
  return message.startsWith("Sequence item without - indicator") ? "ITEM_WITHOUT_DASH" : code;
}

function inWords(error: YAMLError): string {
  const { message } = error;
  switch (mistakeOf(error)) {
    case "DUPLICATE_KEY":
      return "duplicate key; keep one of them";
    case "MULTIPLE_DOCS":
      return "a second YAML document begins here; a configuration is a single document, remove the line ---";
    case "TAB_AS_INDENT":
      return "a tab at the beginning of a line; indent with spaces";
    case "TAG_RESOLVE_FAILED":
      return `${message}; tags have no meaning here, remove it`;
    case "RESOURCE_EXHAUSTION":
      return "lists and objects are nested too deeply here";
    case "BLOCK_IN_FLOW":
      return `not valid YAML: ${lowerFirst(message)}; is a comma missing after this?`;
    case "BAD_INDENT":
    case "BLOCK_AS_IMPLICIT_KEY":
    case "MULTILINE_IMPLICIT_KEY":
      return `not valid YAML: ${lowerFirst(message)}; is the indentation right?`;
    case "ITEM_WITHOUT_DASH":
      return "not valid YAML: this line belongs neither to the list above nor to what holds it; is the indentation right?";
    default:
      return `not valid YAML: ${lowerFirst(message)}`;
  }
}

/**
 * A quote or bracket that is never closed is reported where it opens, not at the end of the text, and a line with the wrong indentation
 * where its text begins.
 */
function offsetOf(error: YAMLError, document: Document.Parsed, text: string): number {
  const { pos } = error;
  if (error.code === "BAD_INDENT")
    return pos[0] + (/^ */.exec(text.slice(pos[0], pos[1] + MAX_INDENT))?.[0].length ?? 0);
  if (mistakeOf(error) !== "UNCLOSED_QUOTE") return pos[0];
  let opened = pos[0];
  visit(document, {
    Scalar(_key, node) {
      const quoted = node.type === "QUOTE_DOUBLE" || node.type === "QUOTE_SINGLE";
      if (quoted && node.range != null && node.range[0] <= pos[0]) opened = node.range[0];
    },
  });
  return opened;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
