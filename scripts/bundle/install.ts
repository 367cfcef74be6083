import { execFile } from "node:child_process";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "../lib/files.ts";

const run = promisify(execFile);
const PATIENCE_MS = 120_000;

/** Packs this checkout and installs the package into `folder`, which is empty. Returns the package's folder, which has `bin/`. */
export async function installPackage(folder: string): Promise<string> {
  const npm = (cwd: string, ...args: readonly string[]) =>
    run("npm", args, { cwd, env: { ...process.env, npm_config_update_notifier: "false" }, timeout: PATIENCE_MS });
  await npm(root, "pack", "--silent", "--pack-destination", folder);
  const [tarball = ""] = readdirSync(folder);
  writeFileSync(join(folder, "package.json"), '{"private": true}');
  await npm(folder, "install", "--prefer-offline", "--no-audit", "--no-fund", join(folder, tarball));
  return join(folder, "node_modules", "tracegate");
}
