import { existsSync, readFileSync } from "node:fs";
import type * as Sea from "node:sea";
import { appRoot } from "./app-root.ts";

/** Loaded at its first use, which most processes do not have. Undefined unless the program is one file with its files in it. */
function executable(): typeof Sea | undefined {
  const sea = process.getBuiltinModule("node:sea");
  return sea.isSea() ? sea : undefined;
}

/**
 * A file of the package by its path in it, such as `package.json`: from its folder, or from the executable that it is part of.
 * Undefined if there is none.
 */
export function readAppFile(path: string): Buffer | undefined {
  const sea = executable();
  if (sea !== undefined) return sea.getAssetKeys().includes(path) ? Buffer.from(sea.getRawAsset(path)) : undefined;
  return existsSync(`${appRoot}${path}`) ? readFileSync(`${appRoot}${path}`) : undefined;
}
