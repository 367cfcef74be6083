/** Installs the programs that the suites run into a cache folder of the user, once for each version. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** A tool or what installs it is not available on this machine. */
export class ToolMissing extends Error {}

/** `$XDG_CACHE_HOME/tracegate/suites`, by default below `~/.cache`. */
const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "tracegate", "suites");
/** Milliseconds for one installation. */
const INSTALL_LIMIT = 300_000;

/** A program of a Go module, e.g. `example.org/tool/cmd/tool` at `v1.2.3`. Returns the path of the binary. */
export function goTool(path: string, version: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const folder = installOnce(`${name}-${version}`, (target) => {
    const environment = { ...process.env, GOBIN: target, GOFLAGS: "-modcacherw" };
    runTool("go", ["install", `${path}@${version}`], environment, "https://go.dev/doc/install");
  });
  return join(folder, name);
}

/** A package of the last Python 2 with its dependencies. Returns its folder of programs, and the environment that they need. */
export function python2Package(name: string, version: string): { bin: string; env: NodeJS.ProcessEnv } {
  const folder = installOnce(`${name}-${version}`, (target) => {
    const python = findPython2();
    const options = ["--quiet", "--disable-pip-version-check", "--no-warn-script-location", "--user"];
    const environment = { ...process.env, PYTHONUSERBASE: target };
    runTool(python, ["-m", "pip", "install", ...options, `${name}==${version}`], environment, "pip for Python 2.7");
  });
  return { bin: join(folder, "bin"), env: { ...process.env, PYTHONUSERBASE: folder } };
}

/** The newest LTS release of Node.js, besides the pinned one. */
export const NEWEST_NODE = "26.10.0";

/** Another Node.js for this machine. Returns its folder, which has `bin/node`. */
export function nodeOf(version: string): string {
  const folder = installOnce(`node-${version}`, (target) => {
    unpackNode(target, process.arch, version);
    runTool(
      join(target, "package/bin/node"),
      ["--version"],
      process.env,
      "libatomic, of the Debian package libatomic1",
    );
  });
  return join(folder, "package");
}

/** The command that runs the Node.js of this process as it is built for arm64, under qemu, without the program to run. */
export function nodeForArm64(): readonly string[] {
  const version = process.version.slice(1);
  const folder = installOnce(`node-arm64-${version}`, (target) => {
    const debian = [
      "qemu-user-static",
      "libc6-arm64-cross",
      "libstdc++6-arm64-cross",
      "libgcc-s1-arm64-cross",
      "libatomic1-arm64-cross",
    ];
    runTool("apt-get", ["download", ...debian], process.env, "apt-get of Debian", target);
    for (const name of readdirSync(target)) runTool("dpkg", ["-x", name, "."], process.env, "dpkg", target);
    unpackNode(target, "arm64", version);
  });
  return [
    `${folder}/usr/bin/qemu-aarch64-static`,
    "-L",
    `${folder}/usr/aarch64-linux-gnu`,
    `${folder}/package/bin/node`,
  ];
}

/** Debian 12 with further packages, as a tar archive of its root. Returns the path. */
export function debianArchive(packages: readonly string[]): string {
  const folder = installOnce(`debian-12-${packages.join("-")}`, (target) => {
    const args = ["--quiet", "--variant=minbase", `--include=${packages.join(",")}`, "bookworm", `${target}/root.tar`];
    runTool("mmdebstrap", args, process.env, "the Debian package mmdebstrap");
  });
  return join(folder, "root.tar");
}

/** Leaves `package/bin/node` in `target`. */
function unpackNode(target: string, processor: string, version: string): void {
  const name = `node-linux-${processor}`;
  runTool("npm", ["pack", "--silent", `${name}@${version}`], process.env, "npm", target);
  runTool("tar", ["-xzf", `${name}-${version}.tgz`], process.env, "tar", target);
}

/** Runs `install` on an empty folder unless it has succeeded before; a failed attempt leaves nothing behind. */
function installOnce(name: string, install: (folder: string) => void): string {
  const folder = join(CACHE, name.replaceAll("+", "-"));
  if (existsSync(folder)) return folder;
  process.stderr.write(`suites: installing ${name} into ${folder}\n`);
  const attempt = `${folder}.${process.pid}`;
  mkdirSync(attempt, { recursive: true });
  try {
    install(attempt);
    renameSync(attempt, folder);
  } catch (error) {
    rmSync(attempt, { recursive: true, force: true });
    throw error;
  }
  return folder;
}

/** `PYTHON2`, `python2.7` on PATH, or the one of pyenv. */
function findPython2(): string {
  const pyenv = spawnSync("pyenv", ["prefix", "2.7.18"], { encoding: "utf8" });
  const candidates = [process.env.PYTHON2, "python2.7", "python2", `${pyenv.stdout?.trim()}/bin/python2.7`];
  const found = candidates.find(
    (each) => each !== undefined && spawnSync(each, ["-c", "import ensurepip"], { stdio: "ignore" }).status === 0,
  );
  if (found !== undefined) return found;
  throw new ToolMissing("needs Python 2.7 with pip: `pyenv install 2.7.18`, or PYTHON2=/path/to/python2.7");
}

function runTool(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  hint: string,
  cwd = process.cwd(),
): void {
  const { status, error, stderr } = spawnSync(program, args, { cwd, env, encoding: "utf8", timeout: INSTALL_LIMIT });
  if (error !== undefined) throw new ToolMissing(`cannot run ${program}: ${error.message}; needed: ${hint}`);
  if (status !== 0) throw new ToolMissing(`${program} ${args.join(" ")} failed:\n${stderr.slice(-2000)}`);
}
