import { type Document, isMap, isScalar, type Node, Pair, Scalar, YAMLMap } from "yaml";

/** A map, or the empty value of a key without one (`frontendPolicies:`). */
export type Holder = YAMLMap<Node, Node | null>;
type Entry = Pair<Node, Node | null>;

/** The map under a key; undefined if the key is missing or has another value. */
export function mapAt(holder: Holder, key: string): Holder | undefined {
  const value = holder.get(key, true);
  return isMap<Node, Node | null>(value) ? value : undefined;
}

/** The map under a key. If the key has no map, creates one: after the entry `after`, or at the end. */
export function ensureMap(holder: Holder, key: string, after?: string): Holder {
  const found = mapAt(holder, key);
  if (found !== undefined) return found;
  const made = new YAMLMap<Node, Node | null>();
  if (holder.flow !== undefined) made.flow = holder.flow;
  const entry = entryOf(holder, key);
  if (entry !== undefined) entry.value = made;
  else {
    const index = holder.items.findIndex(({ key }) => nameOf(key) === after);
    holder.items.splice(
      index < 0 ? holder.items.length : index + 1,
      0,
      new Pair<Node, Node | null>(new Scalar(key), made),
    );
  }
  return made;
}

export function entryOf(holder: Holder, key: string): Entry | undefined {
  return holder.items.find((item) => nameOf(item.key) === key);
}

/** Removes an entry from its map, with the comment above it, which the parser assigns to the map if the entry is the first. */
export function take(holder: Holder, key: string): Entry | undefined {
  const entry = entryOf(holder, key);
  if (entry === undefined) return undefined;
  if (entry === holder.items[0]) {
    prepend(entry, holder.commentBefore);
    holder.commentBefore = null;
  }
  holder.items.splice(holder.items.indexOf(entry), 1);
  return entry;
}

/** Removes an entry whose map has become empty; its comment moves above `heir`. */
export function drop(holder: Holder, key: string, heir: Entry | undefined): void {
  const value = mapAt(holder, key);
  if (value === undefined || value.items.length > 0) return;
  const entry = take(holder, key);
  if (entry === undefined || heir === undefined) return;
  prepend(heir, entry.key.commentBefore, value.commentBefore, value.comment);
}

/** Adds an entry under the name that it has there. */
export function put(holder: Holder, entry: Entry, key: string): void {
  if (isScalar(entry.key)) entry.key.value = key;
  // The line above the first entry of a map would stay empty.
  if (holder.items.length === 0) entry.key.spaceBefore = false;
  holder.items.push(entry);
}

export function nameOf(key: unknown): string | undefined {
  return isScalar(key) ? String(key.value) : undefined;
}

function prepend(entry: Entry, ...comments: readonly (string | null | undefined)[]): void {
  const all = [...comments, entry.key.commentBefore].filter((each) => each !== null && each !== undefined);
  if (all.length > 0) entry.key.commentBefore = all.join("\n");
}

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
