/** Paths of a host, as ingress-nginx matches them. */
import type { Json } from "../converted.ts";
import { whole } from "../nginx/variables.ts";
import { beginningOf, type PathShape, wholePath } from "../paths.ts";
import { groupsIn, isUsablePattern } from "../patterns.ts";
import type { Settings } from "./settings.ts";

export interface PathPlan {
  readonly shapes: readonly PathShape[];
  /** The path that the backend gets. */
  readonly rewrite: Json;
  /** The expression is not one of RE2, so the shapes match more. */
  readonly isWider?: true;
}

type Type = "Exact" | "Prefix" | "ImplementationSpecific";

/** `^/api(/|$)(.*)`: a prefix, and what follows it. */
const WITH_REST = /^\^?([^\\^$*+?()[\]{}|.]*)\(\/\|\$\)\(\.\*\)\$?$/;
const SPECIAL = /[\\^$*+?()[\]{}|.]/;

/** `isRegex`: some Ingress of the host has use-regex or rewrite-target, by which every path of the host is an expression. */
export function planOf(path: string, type: Type, isRegex: boolean, settings: Settings): PathPlan {
  const { rewriteTarget: target, isRestricted, annotations } = settings;
  if (!isRegex) return { shapes: plainShapes(path, type), rewrite: {} };
  // Only where nobody is kept out: requests that the plain path does not match go to other rules.
  const plainly = (plain: string, rewrite: Json): PathPlan => {
    if (plain !== "/")
      annotations.find(
        "warning",
        target === undefined ? "use-regex" : "rewrite-target",
        `${path} matches ${plain} and what is below it, in this spelling; in ingress-nginx, it also matches other spellings and longer words`,
        "write matches of type RegularExpression if clients use these",
      );
    return { shapes: [{ type: "segments", path: plain }], rewrite };
  };
  const pattern = `(?i)^${path.replace(/^\^/, "")}`;
  if (!isUsablePattern(wholePath(pattern)))
    return { shapes: [{ type: "regex", path: wholePath(beginningOf(pattern)) }], rewrite: {}, isWider: true };
  const [, base] = WITH_REST.exec(path) ?? [];
  const [, prefix] = /^(\/(?:[^$]*\/)?)\$2$/.exec(target ?? "") ?? [];
  if (base !== undefined && prefix !== undefined && !isRestricted)
    return plainly(withoutSlash(base) || "/", { urlRewrite: { path: { prefix: withoutSlash(prefix) } } });
  // As in ingress-nginx, a path that is its own target stays as it is.
  const rewrite = target === undefined || target === path ? {} : rewriteOf(path, target);
  if (path === "/" || (!SPECIAL.test(path) && !isRestricted)) return plainly(withoutSlash(path), rewrite);
  return { shapes: [{ type: "regex", path: wholePath(pattern) }], rewrite };
}

function plainShapes(path: string, type: Type): readonly PathShape[] {
  if (type === "Exact") return [{ type: "exact", path }];
  if (path === "/") return [{ type: "segments", path }];
  if (type === "Prefix") return [{ type: "segments", path: withoutSlash(path) }];
  // A prefix of nginx, which may end within a word.
  if (path.endsWith("/")) return [{ type: "below", path }];
  return [
    { type: "segments", path },
    { type: "beyond", path },
  ];
}

function withoutSlash(path: string): string {
  return path.replace(/(?<=.)\/+$/, "");
}

function rewriteOf(path: string, written: string): Json {
  const groups = groupsIn(path);
  // A group that the path does not have is empty.
  const target = written.replace(/\$(\d)/g, (reference, group: string) => (Number(group) <= groups ? reference : ""));
  if (!SPECIAL.test(path) && !target.includes("$")) return { urlRewrite: { path: { full: target } } };
  const query = "request.pathAndQuery.stripPrefix(request.path)";
  const pattern = JSON.stringify(whole(`(?i)${path}`));
  const replaced = `request.path.regexReplace(${pattern}, ${JSON.stringify(target)}) + ${query}`;
  return { transformations: { request: { set: { ":path": replaced } } } };
}
