/**
 * npm run executable
 * Builds tgctl as one file, and uses it on a gateway: its commands, the web view that is in it, and its name as a plugin of kubectl. krew's
 * own check reads the manifest. Needs `npm run build` first.
 */
import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { appRoot } from "../../src/base/app-root.ts";
import { packageVersion } from "../../src/base/build-info.ts";
import { GatewayProcess } from "../helpers/gateway.ts";
import { runSuite } from "./lib/suite.ts";
import { goTool } from "./lib/tools.ts";

const KREW = "v0.4.3";
const FOLDER = `${appRoot}dist/executable`;

await runSuite("executable", async () => {
  if (!existsSync(`${appRoot}dist/origin.json`)) execFileSync("npm", ["run", "build"], { cwd: appRoot });
  const release = "https://releases.example/v1";
  execFileSync(process.execPath, ["scripts/executable.ts", "--release", release], {
    cwd: appRoot,
    stdio: "inherit",
  });
  const folder = mkdtempSync(join(tmpdir(), "tracegate-executable-"));
  const failed: string[] = [];
  const expect = (name: string, text: string, pattern: RegExp): void => {
    if (!pattern.test(text)) failed.push(`${name}: ${text}`);
  };
  const tgctl = join(FOLDER, `tgctl-linux-${process.arch}`);
  const plugin = join(folder, "kubectl-tracegate");
  symlinkSync(tgctl, plugin);
  const routes = [{ policies: { directResponse: { status: 200 } } }];
  const gateway = await GatewayProcess.start({ binds: [{ port: 0, listeners: [{ routes }] }] });
  try {
    await (await fetch(`http://127.0.0.1:${gateway.port("bind/0")}/in-the-list`)).text();
    // Nothing of this machine: no Node.js, no checkout.
    const env = { PATH: "", TGCTL_ADMIN: new URL(gateway.url("admin")).host };
    const run = async (program: string, ...args: readonly string[]): Promise<string> => {
      const { stdout, stderr } = await promisify(execFile)(program, args, { env, cwd: folder, timeout: 30_000 });
      return stdout + stderr;
    };
    expect("--version", await run(tgctl, "--version"), new RegExp(`^tgctl ${packageVersion()}\\n$`));
    expect("recent", await run(tgctl, "recent", "--local"), /GET .*\/in-the-list +200/);
    expect("routes", await run(tgctl, "routes", "--local"), /route0/);
    expect("plugin", await run(plugin, "recent", "--local"), /\/in-the-list/);
    expect("help of the plugin", await run(plugin, "--help"), /^ {2}kubectl tracegate <command>/m);
    const view = spawn(tgctl, ["ui", "--local", "--no-open"], { env, stdio: ["ignore", "pipe", "inherit"] });
    try {
      const [address] = (await once(createInterface(view.stdout), "line", { signal: AbortSignal.timeout(30_000) })) as [
        string,
      ];
      const page = await (await fetch(address)).text();
      expect("web view", page, /<!doctype html>/);
      const [script = ""] = /main-\w+\.js/.exec(page) ?? [];
      expect("its program", String((await fetch(address + script)).status), /^200$/);
    } finally {
      view.kill();
      if (view.exitCode === null) await once(view, "exit");
    }
  } finally {
    await gateway.stop();
    rmSync(folder, { recursive: true });
  }
  // A missing tool is no reason to hide what has failed.
  if (failed.length > 0) return failed;
  const validate = goTool("sigs.k8s.io/krew/cmd/validate-krew-manifest", KREW);
  execFileSync(validate, ["-manifest", join(FOLDER, "tracegate.yaml"), "-skip-install"], { stdio: "inherit" });
  return failed;
});
