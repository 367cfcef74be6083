import { pathToFileURL } from "node:url";
import { appRoot } from "../../base/app-root.ts";

const ROOT = pathToFileURL(appRoot).href;

/** A script's name as profiles show it: `src/x.ts` for files of the package, else its URL (`node:net`, `file:///…`). */
export function sourceName(url: string): string {
  return url.startsWith(ROOT) ? decodeURIComponent(url.slice(ROOT.length)) : url;
}
