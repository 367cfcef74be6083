import { existsSync } from "node:fs";
import { extname } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/**
 * The package's folder, with a slash at its end: holds package.json, schema/ and examples/, in a checkout and when installed.
 * A bundle with a copy of this module must be in a folder of the same depth, as dist/code/ is.
 */
export const appRoot: string = fileURLToPath(new URL("../../", import.meta.url));

/** The folder of a package whose bundles are used; see `runBundlesOf`. */
let packaged: string | undefined;

/**
 * The URL of a module of this program, for `new Worker()` and other places where the compiler cannot rewrite a path.
 * `path` is relative to src/ and without extension, such as `worker/thread`; `.ts` in a checkout, `.cjs` below dist/ in the
 * package, where it starts the bundle of that module (scripts/bundle/bundle.ts).
 */
export function moduleUrl(path: string): URL {
  const bundle = packaged === undefined ? undefined : pathToFileURL(`${packaged}/dist/${path}.cjs`);
  if (bundle !== undefined && existsSync(bundle)) return bundle;
  return new URL(`../${path}${extname(import.meta.url)}`, import.meta.url);
}

/** Lets threads of a checkout run the bundles of the package that was built from it: they start with a quarter of the CPU. For tests. */
export function runBundlesOf(folder: string): void {
  packaged = folder;
}
