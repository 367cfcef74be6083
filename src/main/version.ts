import { readFileSync } from "node:fs";
import { appRoot } from "../base/app-root.ts";

/** Build information as `--version` and the dump show it. */
export interface VersionInfo {
  readonly version: string;
  readonly node: string;
  readonly platform: string;
}

export function versionInfo(): VersionInfo {
  const { version } = JSON.parse(readFileSync(`${appRoot}package.json`, "utf8")) as { version: string };
  return { version, node: process.version, platform: `${process.platform}-${process.arch}` };
}
