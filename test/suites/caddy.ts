/**
 * npm run caddy [-- <name of a configuration>…]
 * Caddyfiles, served by Caddy and, after `convert caddy`, by a gateway: lib/side-by-side.ts.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { convertCaddy } from "../../src/cli/convert/caddy/convert.ts";
import { sideBySide } from "./lib/side-by-side.ts";
import { runSuite } from "./lib/suite.ts";
import { goTool } from "./lib/tools.ts";

function startCaddy(program: string, config: string, folder: string): ChildProcess {
  const file = join(folder, "Caddyfile");
  writeFileSync(file, `{\n\tadmin off\n\tpersist_config off\n\tlog {\n\t\tlevel ERROR\n\t}\n}\n${config}`);
  const env = { ...process.env, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  return spawn(program, ["run", "--adapter", "caddyfile", "--config", file], {
    env,
    stdio: ["ignore", "ignore", "inherit"],
  });
}

await runSuite("caddy", () => {
  const program = goTool("github.com/caddyserver/caddy/v2/cmd/caddy", "v2.11.9");
  return sideBySide({
    name: "caddy",
    ending: ".caddyfile",
    listen: ":8080",
    start: (config, folder) => startCaddy(program, config, folder),
    convert: (name, text) => convertCaddy(name, text, undefined),
  });
});
