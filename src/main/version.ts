import { type BuildInfo, buildInfo } from "../base/build-info.ts";

/** Build information as `--version`, the dump and the controller show it. */
interface VersionInfo extends BuildInfo {
  readonly node: string;
  readonly platform: string;
}

export function versionInfo(): VersionInfo {
  return { ...buildInfo(), node: process.version, platform: `${process.platform}-${process.arch}` };
}
