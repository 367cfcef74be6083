/** YAML as people write it. */
import { Document, isMap, isSeq, Scalar } from "yaml";

export function toYaml(content: unknown): string {
  const document = documentOf(content);
  compact(document.contents);
  return document.toString({ lineWidth: 0 });
}

/** kubectl reads YAML 1.1, where a plain `on` is a boolean and `12:30` a number; texts like these are quoted. */
export function documentOf(content: unknown): Document {
  return new Document(content, { aliasDuplicateObjects: false, compat: "yaml-1.1" });
}

/** Maps and lists of a few plain values stand on one line. */
export function compact(node: unknown): boolean {
  if (node instanceof Scalar) return quoteForGo(node).length <= 40;
  if (!isMap(node) && !isSeq(node)) return false;
  const children = node.items.map((item) => {
    if (!isPair(item)) return compact(item);
    if (item.key instanceof Scalar) quoteForGo(item.key);
    return compact(item.value);
  });
  const isFlow = children.length <= 4 && children.every(Boolean) && JSON.stringify(node).length <= 100;
  if (isFlow) node.flow = true;
  return isFlow && (node.commentBefore ?? "") === "";
}

/** In a map on one line, parsers in Go and C take a plain `?` for the mark of a key, and permit no `:` before a plain text. The text. */
function quoteForGo(node: Scalar): string {
  const text = String(node.value);
  if (/^:|\?/.test(text) && !text.includes("\n")) node.type = Scalar.QUOTE_SINGLE;
  return text;
}

function isPair(item: unknown): item is { readonly key: unknown; readonly value: unknown } {
  return typeof item === "object" && item !== null && "key" in item && "value" in item;
}
