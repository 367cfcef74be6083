/**
 * The start of `tgctl` as one executable file: what loader.ts does for the package, with the bundles and the code that V8 has compiled of
 * them in the executable. `npm run tgctl-executable` puts it there.
 */
import { dirname, join } from "node:path";
import { getAsset, getAssetKeys, getRawAsset } from "node:sea";
import { pathToFileURL } from "node:url";
import { constants, Script } from "node:vm";
import { inlineMore } from "../../src/base/inlining.ts";

interface Loaded {
  exports: object;
}

/** Of bundles, below the package: see bundle.ts. */
const FOLDER = "dist/code";
/** A path for each bundle, as if the package were beside the executable; nothing is read there. */
const root = dirname(process.execPath);
const known = new Set(getAssetKeys());
const modules = new Map<string, Loaded>();

inlineMore();
run("cli-main.cjs");

function run(name: string): object {
  const loaded = modules.get(name);
  if (loaded !== undefined) return loaded.exports;
  const module: Loaded = { exports: {} };
  modules.set(name, module);
  const key = `${FOLDER}/${name}`;
  const filename = join(root, key);
  const cache = `${key}.cache`;
  const cachedData = known.has(cache) ? Buffer.from(getRawAsset(cache)) : undefined;
  const script = new Script(Buffer.from(getRawAsset(key)).toString("latin1"), { filename, cachedData });
  const load = (id: string): unknown => (id.startsWith("./") ? run(id.slice(2)) : builtin(id));
  script.runInThisContext()(module.exports, load, module, filename, dirname(filename), importModule);
  return module.exports;
}

/** The terminal UI is an ES module, which the loader of Node.js takes from a URL with its text. */
function importModule(id: string): Promise<unknown> {
  const importing = new Script("(url) => import(url)", {
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  return importing.runInThisContext()(urlOf(id));
}

/** A URL with the text of a module, in which those that it imports are such URLs too. */
function urlOf(id: string): string {
  const key = `${FOLDER}/${id.slice(2)}`;
  const own = JSON.stringify(pathToFileURL(join(root, key)).href);
  const plain = getAsset(key, "utf8").replaceAll("import.meta.url", own);
  const text = plain.replace(
    /^(import .* from )"(\.\/[^"]+)";$/gm,
    (_all, head: string, inner: string) => `${head}"${urlOf(inner)}";`,
  );
  return `data:text/javascript;base64,${Buffer.from(text).toString("base64")}`;
}

/** Libraries ask for optional modules, and expect an error for those that are not there. */
function builtin(id: string): unknown {
  const found: unknown = process.getBuiltinModule(id);
  if (found === undefined) throw Object.assign(new Error(`Cannot find module '${id}'`), { code: "MODULE_NOT_FOUND" });
  return found;
}
