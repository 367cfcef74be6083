/**
 * npm run chart
 * The Helm chart as an OCI artifact: packed and pushed to a registry as a release is, then installed from there as users do it, as far as
 * that needs no cluster.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { appRoot } from "../../src/base/app-root.ts";
import { runSuite } from "./lib/suite.ts";
import { goTool } from "./lib/tools.ts";

const HELM = "v4.3.0";
const REGISTRY = "v3.1.2";
const CHART = `${appRoot}install/helm/tracegate`;
/** Of the cluster that templates are made for. */
const KUBERNETES = ["--kube-version", "1.36.0", "--include-crds"];
const VALUES = ["--set", "controller.replicaCount=2", "--set", "networkPolicy.enabled=true"];

await runSuite("chart", async () => {
  const helm = goTool("helm.sh/helm/v4/cmd/helm", HELM);
  const registry = goTool("github.com/distribution/distribution/v3/cmd/registry", REGISTRY);
  const folder = mkdtempSync(join(tmpdir(), "tracegate-chart-"));
  try {
    await using host = await startRegistry(registry, folder);
    return cases(helm, folder, `${host.address}/charts`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

/** Returns the names of those that fail. */
function cases(helm: string, folder: string, repository: string): readonly string[] {
  const { version } = JSON.parse(readFileSync(`${appRoot}package.json`, "utf8")) as { version: string };
  const charts = `oci://${repository}`;
  const pushed = `${charts}/tracegate`;
  const failed: string[] = [];
  const run = (...args: readonly string[]) => {
    const env = { ...process.env, HELM_CONFIG_HOME: folder, HELM_CACHE_HOME: folder, HELM_DATA_HOME: folder };
    const { status, stdout, stderr } = spawnSync(helm, args, { encoding: "utf8", env, cwd: appRoot });
    return { status, stdout, output: `${stdout}${stderr}` };
  };
  const expect = (name: string, holds: boolean, output: string): void => {
    process.stdout.write(`chart: ${holds ? "ok" : "FAILED"}: ${name}\n`);
    if (holds) return;
    process.stdout.write(output);
    failed.push(name);
  };
  const succeed = (name: string, ...args: readonly string[]): string => {
    const { status, stdout, output } = run(...args);
    expect(name, status === 0, output);
    return stdout;
  };

  succeed("the chart has no errors and warnings", "lint", "--strict", CHART);
  succeed("it is packed", "package", CHART, "--destination", folder);
  const archive = join(folder, `tracegate-${version}.tgz`);
  const push = run("push", archive, charts, "--plain-http");
  const [digest = ""] = /sha256:\w{64}/.exec(push.output) ?? [];
  expect("it is pushed", push.status === 0 && digest !== "", push.output);
  const shown = succeed("its description is in the registry", "show", "chart", pushed, "--plain-http");
  expect("with the version of the package", shown.includes(`\nversion: ${version}\n`), shown);
  const local = run("template", "tg", CHART, ...KUBERNETES, ...VALUES).stdout;
  for (const [name, reference, ...args] of [
    ["by version", pushed, "--version", version],
    ["by digest", `${pushed}@${digest}`],
  ] as const) {
    const made = run("template", "tg", reference, ...args, "--plain-http", ...KUBERNETES, ...VALUES);
    const same = made.status === 0 && made.stdout === local && local !== "";
    expect(`installed ${name}, it makes the objects that the checkout makes`, same, made.output);
  }
  const kinds = succeed("the CRDs are in it", "show", "crds", pushed, "--plain-http").match(
    /^ {4}kind: Tracegate\w+$/gm,
  );
  expect("all three", kinds?.length === 3, String(kinds));
  const misspelt = run("template", "tg", pushed, "--plain-http", ...KUBERNETES, "--set", "controller.replicas=2");
  expect(
    "an unknown value is rejected by its name",
    misspelt.status !== 0 && misspelt.output.includes("replicas"),
    misspelt.output,
  );
  return failed;
}

/** A registry that keeps everything in memory, on a free port of loopback. */
async function startRegistry(program: string, folder: string) {
  const settings = join(folder, "registry.yaml");
  writeFileSync(
    settings,
    "version: 0.1\nlog: { level: info, accesslog: { disabled: true } }\nstorage: { inmemory: {} }\nhttp: { addr: '127.0.0.1:0' }\n",
  );
  const child = spawn(program, ["serve", settings], { stdio: ["ignore", "ignore", "pipe"] });
  const exited = once(child, "exit");
  const stop = async (): Promise<void> => {
    child.kill();
    await exited;
  };
  for await (const line of createInterface(child.stderr)) {
    const [, address] = /listening on (127\.0\.0\.1:\d+)/.exec(line) ?? [];
    if (address === undefined) continue;
    child.stderr.resume();
    return { address, [Symbol.asyncDispose]: stop };
  }
  throw new Error("the registry did not start");
}
