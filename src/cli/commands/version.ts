import { readFile } from "node:fs/promises";
import { appRoot } from "../../base/app-root.ts";
import { write } from "../context.ts";
import { defineCommand } from "../define-command.ts";

export const version = defineCommand({
  name: "version",
  summary: "Print the version of this client as one line of JSON",
  options: {},
  examples: [{ does: "Which version is this?", run: "version" }],
  async run(_invocation, context) {
    const manifest: unknown = JSON.parse(await readFile(`${appRoot}package.json`, "utf8"));
    const version = typeof manifest === "object" && manifest !== null && "version" in manifest ? manifest.version : "";
    const build = { version, node: process.versions.node, runtimeOS: process.platform, runtimeArch: process.arch };
    await write(context.stdout, `${JSON.stringify(build)}\n`);
  },
});
