/** YAML as people write it. */
import { Document, isMap, isSeq, Scalar } from "yaml";

export function toYaml(content: unknown): string {
  const document = new Document(content, { aliasDuplicateObjects: false });
  compact(document.contents);
  return document.toString({ lineWidth: 0 });
}

/** Maps and lists of a few plain values stand on one line. */
export function compact(node: unknown): boolean {
  if (node instanceof Scalar) return String(node.value).length <= 40;
  if (!isMap(node) && !isSeq(node)) return false;
  const children = node.items.map((item) => compact(isPair(item) ? item.value : item));
  const isFlow = children.length <= 4 && children.every(Boolean) && JSON.stringify(node).length <= 100;
  if (isFlow) node.flow = true;
  return isFlow && (node.commentBefore ?? "") === "";
}

function isPair(item: unknown): item is { readonly value: unknown } {
  return typeof item === "object" && item !== null && "key" in item && "value" in item;
}
