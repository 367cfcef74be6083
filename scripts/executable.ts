/**
 * npm run tgctl-executable [-- --processor arm64 --node /path/to/node] [--release https://…]
 * Writes `dist/executable/tgctl-linux-<processor>`: tgctl with Node.js in one file, for machines without Node.js; beside it the archive for
 * krew, SHA256SUMS of all, and with `--release`, the address of the folder where they will be published, the manifest for krew.
 * Needs `npm run build` first. It fetches Node.js 26, which can build such files; for another processor, it needs the same version that is built for it.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { parse, stringify } from "yaml";
import { NEWEST_NODE, nodeOf } from "../test/suites/lib/tools.ts";
import { bundleExecutableStart } from "./bundle/bundle.ts";
import { readText, root } from "./lib/files.ts";

/** Those of bin/launch.sh; and the terminal UI is loaded in a way about which Node.js would warn. */
const FLAGS = ["--disable-sigusr1", "--use-system-ca", "--disable-warning=ExperimentalWarning"];

const { values } = parseArgs({
  options: { processor: { type: "string" }, node: { type: "string" }, release: { type: "string" } },
});
/** The pinned Node.js cannot build such files. */
const builder = join(nodeOf(NEWEST_NODE), "bin/node");
const { processor = process.arch, node = builder } = values;
const folder = `${root}dist/executable`;
const name = `tgctl-linux-${processor}`;

mkdirSync(folder, { recursive: true });
const main = join(folder, "main.cjs");
const config = join(folder, "sea.json");
writeFileSync(main, await bundleExecutableStart());
const assets = [
  "package.json",
  "dist/origin.json",
  "dist/THIRD-PARTY-NOTICES.txt",
  ...filesIn("dist/ui"),
  ...filesIn("dist/code").filter((path) => /\/(cli-main|tui-)/.test(path)),
  // V8 takes compiled code only from its own version.
].filter((path) => !path.endsWith(".cache"));
writeFileSync(
  config,
  JSON.stringify({
    main,
    output: join(folder, name),
    executable: node,
    disableExperimentalSEAWarning: true,
    useCodeCache: false,
    execArgv: FLAGS,
    execArgvExtension: "none",
    assets: Object.fromEntries(assets.map((path) => [path, `${root}${path}`])),
  }),
);
execFileSync(builder, ["--build-sea", config], { stdio: "inherit" });
rmSync(main);
rmSync(config);
pack(name);
const made = readdirSync(folder).filter((each) => each.startsWith("tgctl-"));
const sums = new Map(
  made.map((each) => [
    each,
    createHash("sha256")
      .update(readFileSync(join(folder, each)))
      .digest("hex"),
  ]),
);
writeFileSync(join(folder, "SHA256SUMS"), [...sums].map(([each, sum]) => `${sum}  ${each}\n`).join(""));
if (values.release !== undefined) writeFileSync(join(folder, "tracegate.yaml"), krewManifest(values.release));
process.stdout.write(`executable: ${name}, ${Math.round(statSync(join(folder, name)).size / 1024 / 1024)} MiB\n`);

function filesIn(path: string): readonly string[] {
  return readdirSync(`${root}${path}`).map((each) => `${path}/${each}`);
}

/** The archive that krew unpacks; all of them made at one time are equal. */
function pack(executable: string): void {
  const archive = join(folder, `${executable}.tar.gz`);
  const content = mkdtempSync(join(folder, "pack-"));
  copyFileSync(join(folder, executable), join(content, "kubectl-tracegate"));
  copyFileSync(`${root}LICENSE`, join(content, "LICENSE"));
  const options = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"];
  execFileSync("tar", [...options, "-C", content, "-czf", archive, "kubectl-tracegate", "LICENSE"]);
  rmSync(content, { recursive: true });
}

function krewManifest(release: string): string {
  const { spec, ...others } = parse(readText("install/krew/tracegate.yaml"));
  const { version } = JSON.parse(readText("package.json"));
  const platforms = [...sums].flatMap(([file, sha256]) => {
    const [, processor] = /^tgctl-linux-(\w+)\.tar\.gz$/.exec(file) ?? [];
    if (processor === undefined) return [];
    const arch = processor === "x64" ? "amd64" : processor;
    return [
      {
        selector: { matchLabels: { os: "linux", arch } },
        uri: `${release.replace(/\/$/, "")}/${file}`,
        sha256,
        bin: "kubectl-tracegate",
      },
    ];
  });
  return stringify({ ...others, spec: { ...spec, version: `v${version}`, platforms } });
}
