/** Brings the cluster up, builds and loads the image, and installs the chart. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { appRoot } from "../../../src/base/app-root.ts";
import { CONTROLLER_NAMESPACE, must, run } from "./tools.ts";

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
/** The Gateway that serves Ingresses, which the test about them makes. */
export const INGRESS_GATEWAY = { namespace: "e2e-ingress", name: "web" };
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
  /** Stops the process of a container, as if its node hung, until the result is called. `container`: `containerd://…`. */
  readonly freeze: (container: string) => Promise<() => Promise<void>>;
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
    freeze: async (container) => {
      const signal = async (name: string): Promise<void> => {
        const id = container.replace("containerd://", "");
        await must("ctr", [
          ...["-a", `${home}/run/containerd.sock`, "-n", "k8s.io"],
          ...["tasks", "kill", "--signal", name, id],
        ]);
      };
      await signal("SIGSTOP");
      return () => signal("SIGCONT");
    },
  };
}

/**
 * Runs `prepare` and then this script again where the addresses of the cluster can be reached, and exits with its exit code.
 * Returns at once in that second process.
 */
export async function reexecInside(script: string, prepare: () => Promise<void>): Promise<void> {
  if (process.env[INSIDE] !== undefined) return;
  await prepare();
  const scripts = clusterScripts();
  const node = [process.execPath, script, ...process.argv.slice(2)];
  const [command = "", ...args] = scripts === undefined ? node : [`${scripts}/in`, ...node];
  // The script `in` sets KUBECONFIG, which alone would mean another cluster.
  const env = { ...process.env, [INSIDE]: "1", ...(scripts !== undefined && { GATEWAY_CLUSTER: scripts }) };
  const { status } = spawnSync(command, args, { stdio: "inherit", env });
  process.exit(status ?? 1);
}

/** Makes the cluster ready: started, with the image of this checkout and the chart installed. */
export async function prepareCluster({
  image,
  install,
}: {
  readonly image: boolean;
  readonly install: boolean;
}): Promise<void> {
  const scripts = clusterScripts();
  const cache = `${homedir()}/.cache/tracegate-e2e`;
  mkdirSync(cache, { recursive: true });
  if (scripts !== undefined) {
    await step("starting the cluster", `${scripts}/up`, []);
    if (image) await loadImage(appRoot, LOCAL_IMAGE);
  }
  if (install) {
    await installChart({
      folder: appRoot,
      image: scripts === undefined ? process.env.TRACEGATE_IMAGE : LOCAL_IMAGE,
      values: [
        "ingress.enabled=true",
        `ingress.gateway.namespace=${INGRESS_GATEWAY.namespace}`,
        `ingress.gateway.name=${INGRESS_GATEWAY.name}`,
      ],
    });
    // The image has the same name as before, so a new one needs new pods.
    if (image) {
      const rollout = ["kubectl", "-n", CONTROLLER_NAMESPACE, "rollout"];
      await step("restarting the controller", ...inside(...rollout, "restart", "deployment/tracegate"));
      await step(
        "waiting for the controller",
        ...inside(...rollout, "status", "deployment/tracegate", "--timeout=180s"),
      );
    }
    await requestLittle();
  }
}

/** A command where the addresses of the cluster can be reached. */
function inside(...command: readonly string[]): readonly [string, readonly string[]] {
  const scripts = clusterScripts();
  return scripts === undefined || process.env[INSIDE] !== undefined
    ? [command[0] ?? "", command.slice(1)]
    : [`${scripts}/in`, command];
}

/** Installs or upgrades: the CRDs and the chart of a checkout, with further values. */
export async function installChart({
  folder,
  image,
  values = [],
}: {
  readonly folder: string;
  readonly image: string | undefined;
  readonly values?: readonly string[];
}): Promise<void> {
  const helm = helmBinary(`${homedir()}/.cache/tracegate-e2e`);
  const crds = `${folder}/install/helm/tracegate/crds`;
  await step("applying the CRDs", ...inside("kubectl", "apply", "--server-side", "--force-conflicts", "-f", crds));
  const [registry, repository, tag] = imageParts(image);
  const names = [`image.registry=${registry}`, `image.repository=${repository}`, `image.tag=${tag}`];
  await step(
    "installing the chart",
    ...inside(
      helm,
      ...["upgrade", "--install", "tracegate", `${folder}/install/helm/tracegate`, "--namespace", CONTROLLER_NAMESPACE],
      ...["--create-namespace", "--skip-crds", "--wait", "--timeout", "180s"],
      ...names.flatMap((value) => ["--set-string", value]),
      ...values.flatMap((value) => ["--set", value]),
    ),
  );
}

/** The suites run dozens of Gateways on one node, which has no room for what each requests by default. */
export async function requestLittle(): Promise<void> {
  await step(
    "waiting for the class",
    ...inside("kubectl", "wait", "--for=create", "gatewayclass/tracegate", "--timeout=60s"),
  );
  await step("applying small requests", ...inside("kubectl", "apply", "-f", "test/cluster/lib/small-proxies.yaml"));
  await step(
    "referring to them",
    ...inside("kubectl", "patch", "gatewayclass", "tracegate", "--type=merge", "--patch", SMALL_PROXIES),
  );
}

/** Builds the image of a checkout and puts it on the node of the test cluster. */
export async function loadImage(folder: string, name: string): Promise<void> {
  const scripts = clusterScripts();
  if (scripts === undefined) throw new Error("images are built for the test cluster only; unset KUBECONFIG");
  const archive = `${homedir()}/.cache/tracegate-e2e/${name.replace(/[/:]/g, "-")}.tar`;
  await step("building the image", `${scripts}/build-image`, [
    name,
    archive,
    "-f",
    `${folder}/install/Dockerfile`,
    folder,
  ]);
  await step("loading the image", `${scripts}/load`, [archive]);
}

/** Does not block: a test may send requests meanwhile. */
async function step(what: string, command: string, args: readonly string[]): Promise<void> {
  const startedAt = performance.now();
  process.stdout.write(`${what} … `);
  const { code, stdout, stderr } = await run(command, args, { cwd: appRoot });
  if (code !== 0) {
    process.stdout.write("failed\n");
    throw new Error(`${command} ${args.join(" ")}: exit code ${code}\n${stdout}${stderr}`);
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
