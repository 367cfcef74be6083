/** Brings the cluster up, builds and loads the image, and installs the chart. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { appRoot } from "../../../src/base/app-root.ts";
import { CONTROLLER_NAMESPACE, must } from "./tools.ts";

/** Set in the process that runs where the cluster's addresses exist. */
const INSIDE = "TRACEGATE_E2E_INSIDE";
/** The image that is built here; `TRACEGATE_IMAGE` names another one for a cluster that pulls it. */
const LOCAL_IMAGE = "tracegate.local/tracegate:e2e";
const SMALL_PROXIES = JSON.stringify({
  spec: {
    parametersRef: {
      group: "tracegate.dev",
      kind: "TracegateParameters",
      name: "small-proxies",
      namespace: CONTROLLER_NAMESPACE,
    },
  },
});
const HELM_MODULE = "helm.sh/helm/v4/cmd/helm@v4.3.0";

/** The folder with the scripts of the test cluster; undefined: the cluster of KUBECONFIG is used. */
export function clusterScripts(): string | undefined {
  if (process.env.GATEWAY_CLUSTER === undefined && process.env.KUBECONFIG !== undefined) return undefined;
  const folder = resolve(process.env.GATEWAY_CLUSTER ?? `${appRoot}../shared/cluster`);
  if (existsSync(`${folder}/up`)) return folder;
  throw new Error("no cluster: set KUBECONFIG, or GATEWAY_CLUSTER to the folder of the test cluster's scripts");
}

/** What tests do to processes of the test cluster. */
export interface ClusterProcesses {
  /** The result starts it again, and resolves when the cluster says that its node is ready. */
  readonly killApiServer: () => () => Promise<string>;
  /** Stops the node's reports, or the controller manager, until the result is called. Pods run on. */
  readonly pause: (name: "kubelet" | "kcm") => () => void;
}

/** undefined in other clusters. */
export function clusterProcesses(): ClusterProcesses | undefined {
  const scripts = process.env[INSIDE] === undefined ? undefined : clusterScripts();
  if (scripts === undefined) return undefined;
  const home = process.env.GATEWAY_CLUSTER_HOME ?? `${homedir()}/.cache/gateway-cluster`;
  const send = (signal: NodeJS.Signals, name: string): boolean =>
    process.kill(Number(readFileSync(`${home}/run/${name}.pid`, "utf8")), signal);
  return {
    killApiServer: () => {
      send("SIGKILL", "apiserver");
      return () => must(`${scripts}/up`, []);
    },
    pause: (name) => {
      send("SIGSTOP", name);
      return () => send("SIGCONT", name);
    },
  };
}

/**
 * Runs `prepare` and then this script again where the addresses of the cluster can be reached, and exits with its exit code.
 * Returns at once in that second process.
 */
export async function reexecInside(script: string, prepare: () => void): Promise<void> {
  if (process.env[INSIDE] !== undefined) return;
  prepare();
  const scripts = clusterScripts();
  const node = [process.execPath, script, ...process.argv.slice(2)];
  const [command = "", ...args] = scripts === undefined ? node : [`${scripts}/in`, ...node];
  // The script `in` sets KUBECONFIG, which alone would mean another cluster.
  const env = { ...process.env, [INSIDE]: "1", ...(scripts !== undefined && { GATEWAY_CLUSTER: scripts }) };
  const { status } = spawnSync(command, args, { stdio: "inherit", env });
  process.exit(status ?? 1);
}

/** Makes the cluster ready: started, with the image of this checkout and the chart installed. */
export function prepareCluster({ image, install }: { readonly image: boolean; readonly install: boolean }): void {
  const scripts = clusterScripts();
  const cache = `${homedir()}/.cache/tracegate-e2e`;
  mkdirSync(cache, { recursive: true });
  if (scripts !== undefined) {
    step("starting the cluster", `${scripts}/up`, []);
    if (image) {
      const archive = `${cache}/tracegate.tar`;
      step("building the image", `${scripts}/build-image`, [LOCAL_IMAGE, archive, "-f", "install/Dockerfile", "."]);
      step("loading the image", `${scripts}/load`, [archive]);
    }
  }
  if (install) {
    const helm = helmBinary(cache);
    const inside = (...command: readonly string[]): readonly [string, readonly string[]] =>
      scripts === undefined ? [command[0] ?? "", command.slice(1)] : [`${scripts}/in`, command];
    step(
      "applying the CRDs",
      ...inside("kubectl", "apply", "--server-side", "--force-conflicts", "-f", "install/crds"),
    );
    const [registry, repository, tag] = imageParts(scripts === undefined ? process.env.TRACEGATE_IMAGE : LOCAL_IMAGE);
    const values = [`image.registry=${registry}`, `image.repository=${repository}`, `image.tag=${tag}`];
    step(
      "installing the chart",
      ...inside(
        helm,
        ...["upgrade", "--install", "tracegate", "install/helm/tracegate", "--namespace", CONTROLLER_NAMESPACE],
        ...["--create-namespace", "--skip-crds", "--wait", "--timeout", "180s"],
        ...values.flatMap((value) => ["--set-string", value]),
      ),
    );
    // The image has the same name as before, so a new one needs new pods.
    if (image) {
      const rollout = ["kubectl", "-n", CONTROLLER_NAMESPACE, "rollout"];
      step("restarting the controller", ...inside(...rollout, "restart", "deployment/tracegate"));
      step("waiting for the controller", ...inside(...rollout, "status", "deployment/tracegate", "--timeout=180s"));
    }
    // The suites run dozens of Gateways on one node, which has no room for what each requests by default.
    step(
      "waiting for the class",
      ...inside("kubectl", "wait", "--for=create", "gatewayclass/tracegate", "--timeout=60s"),
    );
    step("applying small requests", ...inside("kubectl", "apply", "-f", "test/cluster/lib/small-proxies.yaml"));
    step(
      "referring to them",
      ...inside("kubectl", "patch", "gatewayclass", "tracegate", "--type=merge", "--patch", SMALL_PROXIES),
    );
  }
}

function step(what: string, command: string, args: readonly string[]): void {
  const startedAt = performance.now();
  process.stdout.write(`${what} … `);
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd: appRoot, encoding: "utf8" });
  if (error !== undefined || status !== 0) {
    process.stdout.write("failed\n");
    throw new Error(`${command} ${args.join(" ")}: ${error?.message ?? `exit code ${status}`}\n${stdout}${stderr}`);
  }
  process.stdout.write(`${((performance.now() - startedAt) / 1000).toFixed(1)} s\n`);
}

/** Helm from the PATH, else built from Go's module registry. */
function helmBinary(cache: string): string {
  if (spawnSync("helm", ["version"]).status === 0) return "helm";
  const built = `${cache}/helm`;
  if (!existsSync(built)) {
    process.stdout.write("building helm (5 minutes, once) … ");
    const { status, stderr } = spawnSync("go", ["install", HELM_MODULE], {
      encoding: "utf8",
      env: { ...process.env, GOBIN: cache },
    });
    if (status !== 0) throw new Error(`helm is not installed and cannot be built: ${stderr}`);
    process.stdout.write("done\n");
  }
  return built;
}

/** `registry/repository:tag` */
function imageParts(image: string | undefined): readonly [string, string, string] {
  const [, registry, repository, tag] = /^([^/]+)\/(.+):([^:/]+)$/.exec(image ?? "") ?? [];
  if (registry === undefined || repository === undefined || tag === undefined)
    throw new Error("set TRACEGATE_IMAGE to an image that the nodes can pull, as registry/repository:tag");
  return [registry, repository, tag];
}
