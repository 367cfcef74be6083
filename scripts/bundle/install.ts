import { cpSync, mkdirSync, symlinkSync } from "node:fs";
import { root } from "../lib/files.ts";
import { bundle } from "./bundle.ts";
import { recordCodeCache } from "./code-cache.ts";

/**
 * Puts the package of this checkout into `folder`, an empty one, as npm would install it, beside the pinned Node.js. Takes five seconds, most
 * of them to record the code cache. Returns the package's folder, which has `bin/`.
 */
export async function installPackage(folder: string): Promise<string> {
  const installed = `${folder}/node_modules/tracegate`;
  mkdirSync(installed, { recursive: true });
  symlinkSync(`${root}node_modules/node`, `${folder}/node_modules/node`);
  for (const name of ["bin", "schema", "examples", "package.json"])
    cpSync(`${root}${name}`, `${installed}/${name}`, { recursive: true });
  await bundle(`${installed}/dist`);
  await recordCodeCache(`${installed}/dist`);
  return installed;
}
