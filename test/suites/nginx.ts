/**
 * npm run nginx [-- <name of a configuration>…]
 * Configurations of nginx, served by nginx and, after `convert nginx`, by a gateway: lib/side-by-side.ts.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { convertNginx } from "../../src/cli/convert/nginx/convert.ts";
import { sideBySide } from "./lib/side-by-side.ts";
import { runSuite } from "./lib/suite.ts";
import { ToolMissing } from "./lib/tools.ts";

function startNginx(config: string, folder: string): ChildProcess {
  const file = join(folder, "main.conf");
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${join(folder, name)};`)
    .join(" ");
  writeFileSync(
    file,
    `daemon off; pid ${join(folder, "pid")}; error_log stderr crit; worker_processes 1; events {} http { access_log off; ${paths}\n${config}\n}`,
  );
  return spawn("nginx", ["-p", folder, "-c", file], { stdio: ["ignore", "ignore", "inherit"] });
}

await runSuite("nginx", () => {
  if (spawnSync("nginx", ["-v"]).error !== undefined) throw new ToolMissing("nginx is not on the PATH");
  return sideBySide({
    name: "nginx",
    ending: ".conf",
    listen: "listen 8080",
    start: startNginx,
    convert: (name, text) => convertNginx(name, text, undefined),
  });
});
