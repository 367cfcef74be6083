import type { HttpRequest } from "../../http/message.ts";
import { pathOf } from "./condition.ts";
import { conditionsHold, type Entry, withoutTrailingSlashes } from "./entry.ts";
import { insertSorted } from "./precedence.ts";

const SLASH = 0x2f;

/** A prefix in the tree of path segments. */
interface Node<R> {
  readonly parent: Node<R> | undefined;
  readonly entries: Entry<R>[];
  /** Made with the first child: most nodes are leaves. */
  children: Map<string, Node<R>> | undefined;
}

/**
 * The matches of one hostname. Exact paths stand in a map, prefixes in a tree walked once along the path's segments, so the
 * time depends on the path and not on how many routes there are; only regular expressions are tried one by one.
 */
export class PathIndex<R extends { readonly key: string }> {
  readonly #exact = new Map<string, Entry<R>[]>();
  readonly #root: Node<R> = { parent: undefined, entries: [], children: undefined };
  readonly #regexes: Entry<R>[] = [];

  add(entry: Entry<R>): void {
    if (entry.path.type === "regex") {
      insertSorted(this.#regexes, entry);
    } else if (entry.path.type === "exact") {
      const list = this.#exact.get(entry.path.value);
      if (list === undefined) this.#exact.set(entry.path.value, [entry]);
      else insertSorted(list, entry);
    } else {
      const node = this.#nodeOf(withoutTrailingSlashes(entry.path.value));
      if (node !== undefined) insertSorted(node.entries, entry);
    }
  }

  /** The first match in the order of precedence that fits the request. */
  select(request: HttpRequest): Entry<R> | undefined {
    const path = pathOf(request);
    if (this.#exact.size > 0) {
      const exact = this.#exact.get(path);
      if (exact !== undefined) for (const entry of exact) if (conditionsHold(entry, request)) return entry;
    }
    const regexes = this.#regexes;
    let next = 0;
    // Going up the tree the prefixes get shorter; the regexes that are longer than the prefix at hand go before it.
    for (let node = this.#deepest(path); node !== undefined; node = node.parent) {
      for (const entry of node.entries) {
        for (; next < regexes.length; next++) {
          const regex = regexes[next] as Entry<R>;
          if (regex.length <= entry.length) break;
          if (regexHolds(regex, path, request)) return regex;
        }
        if (conditionsHold(entry, request)) return entry;
      }
    }
    for (; next < regexes.length; next++) {
      const regex = regexes[next] as Entry<R>;
      if (regexHolds(regex, path, request)) return regex;
    }
    return undefined;
  }

  /** The node of the longest known prefix of `path`; nodes on the way up may be without entries. */
  #deepest(path: string): Node<R> | undefined {
    if (path.charCodeAt(0) !== SLASH) return undefined;
    let node = this.#root;
    for (let start = 1; node.children !== undefined && start <= path.length; ) {
      let end = path.indexOf("/", start);
      if (end === -1) end = path.length;
      const child = node.children.get(path.slice(start, end));
      if (child === undefined) break;
      node = child;
      start = end + 1;
    }
    return node;
  }

  /** The node of a prefix, made if needed; undefined for text that does not begin with a slash, which no path has as prefix. */
  #nodeOf(prefix: string): Node<R> | undefined {
    if (prefix === "") return this.#root;
    const [before, ...segments] = prefix.split("/");
    if (before !== "") return undefined;
    let node = this.#root;
    for (const segment of segments) {
      node.children ??= new Map();
      let child = node.children.get(segment);
      if (child === undefined) {
        child = { parent: node, entries: [], children: undefined };
        node.children.set(segment, child);
      }
      node = child;
    }
    return node;
  }
}

/** The pattern is tried last: it costs most. */
function regexHolds<R>(entry: Entry<R>, path: string, request: HttpRequest): boolean {
  if (!path.startsWith(entry.literal) || !conditionsHold(entry, request)) return false;
  return entry.pattern?.testExact(path) === true;
}
