/**
 * A page with new text after the line `<!-- generated: NAME -->`: the text before the line is written by hand. Throws when
 * the page has no such line.
 */
export function generatedPart(path: string, page: string, name: string, text: string): string {
  const marker = `<!-- generated: ${name} -->\n`;
  const at = page.indexOf(marker);
  if (at < 0) throw new Error(`${path}: the line ${marker.trimEnd()} is missing`);
  return `${page.slice(0, at)}${marker}\n${text}`;
}
