/**
 * The start of every program and thread of the published package; `npm run build` puts a copy in front of each. Runs a bundle
 * from the code that V8 compiled when the package was built. V8 checks its version and flags first; under another Node.js it
 * compiles the code again, which only takes longer. Nothing is ever written, so the package may belong to another user or be read-only.
 *
 * Not Node's own compile cache: it is bound to the user id that wrote it, and hashes every source to find it.
 */
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { Script } from "node:vm";
import { inlineMore } from "../../src/base/inlining.ts";

/** What a bundle is wrapped in. */
type Wrapper = (
  exports: object,
  require: (id: string) => unknown,
  module: Loaded,
  file: string,
  folder: string,
  importModule: (id: string) => Promise<unknown>,
) => void;

interface Loaded {
  exports: object;
}

inlineMore();

const modules = new Map<string, Loaded>();

/** Runs the bundle `name` of `folder`, once; returns what it exports. */
export function run(folder: string, name: string): object {
  const file = `${folder}/${name}`;
  const known = modules.get(file);
  if (known !== undefined) return known.exports;
  const module: Loaded = { exports: {} };
  modules.set(file, module);
  const script = new Script(readFileSync(file, "latin1"), { filename: file, cachedData: cachedCode(file) });
  const wrapper: Wrapper = script.runInThisContext();
  // Bundles import each other by relative paths, everything else is part of Node.js.
  const load = (id: string): unknown => (id.startsWith("./") ? run(folder, id.slice(2)) : builtin(id));
  // Not `import()` in the bundle: in a script it needs an experimental feature, about which Node.js warns the user.
  const importModule = (id: string): Promise<unknown> => import(pathToFileURL(`${folder}/${id}`).href);
  wrapper(module.exports, load, module, file, folder, importModule);
  return module.exports;
}

/** Libraries ask for optional modules, and expect an error for those that are not there. */
function builtin(id: string): unknown {
  const found: unknown = process.getBuiltinModule(id);
  if (found === undefined) throw Object.assign(new Error(`Cannot find module '${id}'`), { code: "MODULE_NOT_FOUND" });
  return found;
}

/** Undefined while the build has not made it yet. */
function cachedCode(file: string): Buffer | undefined {
  try {
    return readFileSync(`${file}.cache`);
  } catch {
    return undefined;
  }
}
