import type { Document } from "yaml";

/**
 * The document as text in the style of the text that it was read from: JSON stays JSON; YAML keeps its indentation, and lines
 * are not broken that were not. How comments line up is lost, and blank lines of more than one.
 */
export function formatLike(text: string, document: Document): string {
  const indent = /^( +)\S/m.exec(text)?.[1]?.length ?? 2;
  if (isJson(text)) return `${JSON.stringify(document.toJS(), undefined, text.includes("\n") ? indent : 0)}\n`;
  return document.toString({
    indent,
    // `- a` below `list:` in the same column.
    indentSeq: !/^( *)[^\s#-][^\n]*:\n\1- /m.test(text),
    flowCollectionPadding: !/[{[][^\s{}[\]]/.test(text),
    lineWidth: Math.max(80, ...text.split("\n").map((line) => line.length)),
  });
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
