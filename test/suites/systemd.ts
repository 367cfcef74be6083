/**
 * npm run systemd
 * The unit of `install/systemd/` under a systemd of its own: Debian in user-mode-linux, a program that needs no privileges. Its root is a
 * folder made for it, so it shares no file, process or control group with this system. 77: what it needs is not installed.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installPackage } from "../../scripts/bundle/install.ts";
import { appRoot } from "../../src/base/app-root.ts";
import { runSuite } from "./lib/suite.ts";
import { debianArchive, ToolMissing } from "./lib/tools.ts";

/** Milliseconds for everything inside; on a busy machine it takes eight minutes. */
const LIMIT = 900_000;
const PACKAGES = ["systemd", "systemd-sysv", "iproute2", "libatomic1", "procps"];
/** Runs when the system is up, and ends it. */
const TRIAL = `[Service]
Type=oneshot
TimeoutStartSec=infinity
ExecStartPre=/sbin/ip link set lo up
ExecStart=/bin/sh -c '/usr/local/bin/node /trial/inside.ts >/trial/output 2>&1'
ExecStopPost=/bin/systemctl poweroff --force --force
`;

await runSuite("systemd", async () => {
  if (spawnSync("linux.uml", ["--version"]).error !== undefined)
    throw new ToolMissing("needs the Debian package user-mode-linux");
  const archive = debianArchive(PACKAGES);
  const folder = mkdtempSync(join(tmpdir(), "tracegate-systemd-"));
  try {
    const root = join(folder, "root");
    await makeRoot(root, archive, join(folder, "package"));
    boot(root);
    const output = join(root, "trial/output");
    if (!existsSync(output)) throw new ToolMissing("user-mode-linux cannot start systemd on this machine");
    const text = readFileSync(output, "utf8");
    process.stdout.write(text);
    const failed = Array.from(text.matchAll(/^FAILED: (.*)$/gm), ([, name = ""]) => name);
    return text.endsWith("end\n") ? failed : [...failed, "it did not come to the end"];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

/** Debian with the package installed as docs/production.md says, and the unit as it is. */
async function makeRoot(root: string, archive: string, staging: string): Promise<void> {
  mkdirSync(root);
  mkdirSync(staging);
  const { status, stderr } = spawnSync("tar", ["-xf", archive, "-C", root], { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  const local = join(root, "usr/local");
  cpSync(await installPackage(staging), join(local, "lib/node_modules/tracegate"), { recursive: true });
  symlinkSync("../lib/node_modules/tracegate/bin/tracegate", join(local, "bin/tracegate"));
  cpSync(process.execPath, join(local, "bin/node"));
  const units = join(root, "etc/systemd/system");
  cpSync(`${appRoot}install/systemd/tracegate.service`, join(units, "tracegate.service"));
  mkdirSync(join(root, "etc/tracegate"));
  mkdirSync(join(root, "trial"));
  cpSync(`${import.meta.dirname}/systemd/inside.ts`, join(root, "trial/inside.ts"));
  writeFileSync(join(units, "trial.service"), TRIAL);
  mkdirSync(join(units, "multi-user.target.wants"), { recursive: true });
  symlinkSync("../trial.service", join(units, "multi-user.target.wants/trial.service"));
}

/** Returns when the system has been switched off. */
function boot(root: string): void {
  const disk = ["root=/dev/root", "rootfstype=hostfs", `rootflags=${root}`, "rw"];
  const args = [
    "mem=1500M",
    ...disk,
    "init=/lib/systemd/systemd",
    "con=null",
    "con0=fd:0,fd:1",
    "quiet",
    "systemd.show_status=0",
  ];
  spawnSync("linux.uml", args, { stdio: "ignore", timeout: LIMIT });
}
