/**
 * Preloaded by the launchers of a checkout (`node --require`): keeps compiled code between starts, which halves the time of a
 * start. The cache is used only if this user may write to `node_modules`; the variable `NODE_COMPILE_CACHE` takes precedence. The
 * published package brings its own code cache, see scripts/bundle/loader.ts, which sets the flags of V8 too.
 */
import { accessSync, constants, mkdirSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { appRoot } from "./app-root.ts";
import { inlineMore } from "./inlining.ts";

/** The folder of the cache, or undefined where it cannot be written. */
export function compileCacheFolder(root: string): string | undefined {
  let folder = `${root}node_modules`;
  try {
    accessSync(folder, constants.W_OK);
    // One level at a time: Node's recursive mkdir never returns where a file system refuses new folders with ENOENT (/proc).
    for (const name of [".cache", "compile"]) {
      folder = `${folder}/${name}`;
      makeFolder(folder);
    }
    accessSync(folder, constants.W_OK);
    return folder;
  } catch {
    return undefined;
  }
}

function makeFolder(path: string): void {
  try {
    mkdirSync(path);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
}

inlineMore();
if (process.env.NODE_COMPILE_CACHE === undefined) {
  const folder = compileCacheFolder(appRoot);
  if (folder !== undefined) enableCompileCache(folder);
}
