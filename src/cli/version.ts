import { readFile } from "node:fs/promises";
import { appRoot } from "../base/app-root.ts";
import { type Context, write } from "./context.ts";

/** The version of this package. */
async function packageVersion(): Promise<string> {
  const manifest: unknown = JSON.parse(await readFile(`${appRoot}package.json`, "utf8"));
  return typeof manifest === "object" && manifest !== null && "version" in manifest ? String(manifest.version) : "";
}

/** `tgctl --version`: one line for people; as JSON the same as `tgctl version`. */
export async function writeVersion(context: Context): Promise<void> {
  if (context.json) return writeBuild(context);
  await write(context.stdout, `tgctl ${await packageVersion()}\n`);
}

/** `tgctl version`: one line of JSON. */
export async function writeBuild(context: Context): Promise<void> {
  const version = await packageVersion();
  const build = { version, node: process.versions.node, runtimeOS: process.platform, runtimeArch: process.arch };
  await write(context.stdout, `${JSON.stringify(build)}\n`);
}
