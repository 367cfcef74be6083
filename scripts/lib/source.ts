/**
 * Blanks out comments of TypeScript source, keeping line numbers and string contents. A scanner of strings, templates and
 * comments instead of a parser: enough for sources that biome has formatted. Its one blind spot is a regular expression
 * literal that holds a quote or `//`; strings end at the line, so at worst the rest of that line is misread.
 */
export function withoutComments(text: string): string {
  return text.replace(
    /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\[\s\S]|[^`\\])*`|\/\/[^\n]*|\/\*[\s\S]*?\*\//g,
    (token) => (token.startsWith("//") || token.startsWith("/*") ? token.replace(/[^\n]/g, " ") : token),
  );
}

export interface Import {
  readonly specifier: string;
  /** `lazy` = `import()` at run time, `type` = erased before the module runs, `static` = everything else. */
  readonly kind: "static" | "lazy" | "type";
  readonly line: number;
  /** What is between `import` and `from`, such as `{ a, b as c }`; empty if nothing is, as in `import()`. */
  readonly clause: string;
}

const IMPORT = /(?:^|[;}\n])\s*(?:import|export)\s+(type\s)?(?:([^"';]*?)\sfrom\s+)?"([^"]+)"|\bimport\(\s*"([^"]+)"/g;

/** The modules that a TypeScript source names in import and export declarations and in `import()`. */
export function importsOf(text: string): Import[] {
  const code = withoutComments(text);
  return [...code.matchAll(IMPORT)].map((match) => {
    const [, type, clause = "", eager, lazy] = match;
    return {
      specifier: lazy ?? eager ?? "",
      kind: lazy !== undefined ? "lazy" : type !== undefined ? "type" : "static",
      clause,
      line: code.slice(0, match.index + match[0].length).split("\n").length,
    };
  });
}
