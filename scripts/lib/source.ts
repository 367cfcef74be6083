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
  /** `lazy` = `import()` at run time, `static` = everything else, type imports included. */
  readonly kind: "static" | "lazy";
  readonly line: number;
}

const IMPORT = /(?:^|[;}\n])\s*(?:import|export)\s+(?:[^"';]*?\sfrom\s+)?"([^"]+)"|\bimport\(\s*"([^"]+)"/g;

/** The modules that a TypeScript source names in import and export declarations and in `import()`. */
export function importsOf(text: string): Import[] {
  const code = withoutComments(text);
  return [...code.matchAll(IMPORT)].map((match) => {
    const lazy = match[2];
    return {
      specifier: lazy ?? match[1] ?? "",
      kind: lazy === undefined ? "static" : "lazy",
      line: code.slice(0, match.index + match[0].length).split("\n").length,
    };
  });
}
