/**
 * npm run upgrade:cluster -- [--no-image] COMMIT
 * Installs the version of a commit into the test cluster (see run.ts), with two replicas of the controller, and upgrades it to this checkout
 * as docs/kubernetes.md says, while clients send requests. Then the leader of the controllers is deleted, which hands over, and stopped
 * without notice, so that its Lease has to expire; the other replica must apply and accept a change, and the former leader, once it
 * runs again, must not lead beside it. No request may fail.
 */
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { appRoot } from "../../src/base/app-root.ts";
import { get, Load } from "./lib/http.ts";
import { routeYaml } from "./lib/objects.ts";
import { applyReplicated } from "./lib/replicated.ts";
import { clusterProcesses, installChart, loadImage, prepareCluster, reexecInside, requestLittle } from "./lib/setup.ts";
import { apply, CONTROLLER_NAMESPACE, eventually, getJson, kubectl } from "./lib/tools.ts";

const NS = "e2e-upgrade";
const HOST = "www.example.com";
const FORMER = "tracegate.local/tracegate:former";
const CURRENT = "tracegate.local/tracegate:current";
const CONTROLLERS = ["controller.replicaCount=2"];
const FAILOVERS = 3;
const FREEZES = 2;
const REQUESTS_PER_SECOND = 200;

const args = process.argv.slice(2);
const [commit] = args.filter((each) => !each.startsWith("--"));
if (commit === undefined) throw new Error("name the commit to upgrade from: npm run upgrade:cluster -- COMMIT");
const former = `${tmpdir()}/tracegate-former`;

await reexecInside(import.meta.filename, async () => {
  rmSync(former, { recursive: true, force: true });
  git("worktree", "prune");
  git("worktree", "add", "--detach", former, commit);
  await prepareCluster({ image: false, install: false });
  if (!args.includes("--no-image")) {
    await loadImage(former, FORMER);
    await loadImage(appRoot, CURRENT);
  }
});

interface Pods {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
    readonly spec: { readonly containers: readonly { readonly image: string }[] };
  }[];
}

interface Pod {
  readonly status: { readonly containerStatuses: readonly { readonly containerID: string }[] };
}

await installChart({ folder: former, image: FORMER, values: CONTROLLERS });
await requestLittle();
const address = await applyReplicated(NS, HOST);

await measured("upgrade", async () => {
  await installChart({ folder: appRoot, image: CURRENT, values: CONTROLLERS });
  await kubectl("-n", CONTROLLER_NAMESPACE, "rollout", "status", "deployment/tracegate", "--timeout=180s");
  await eventually(
    "only proxies of the new version",
    async () => {
      const { items } = await getJson<Pods>("-n", NS, "pods", "-l", "gateway.networking.k8s.io/gateway-name=web");
      return items.length === 3 && items.every(({ spec }) => spec.containers[0]?.image === CURRENT);
    },
    300,
  );
  await changeTakesEffect("after-upgrade");
});

for (let i = 0; i < FAILOVERS; i++)
  await measured(`failover ${i + 1}`, async () => {
    const before = await leader();
    await kubectl("-n", CONTROLLER_NAMESPACE, "delete", "pod", before, "--grace-period=0", "--force");
    const startedAt = performance.now();
    await changeTakesEffect(`failover-${i}`);
    process.stdout.write(`${seconds(startedAt)} until the change was served, `);
    await eventually("another leader", async () => (await leader()) !== before);
    // The status is written by the leader only.
    await accepted(`failover-${i}`);
    process.stdout.write(`${seconds(startedAt)} until its status was written, `);
    await kubectl("-n", CONTROLLER_NAMESPACE, "rollout", "status", "deployment/tracegate", "--timeout=180s");
  });

for (let i = 0; i < FREEZES; i++)
  await measured(`hanging leader ${i + 1}`, async () => {
    const before = await leader();
    const { status } = await getJson<Pod>("-n", CONTROLLER_NAMESPACE, "pod", before);
    const resume = await clusterProcesses()?.freeze(status.containerStatuses[0]?.containerID ?? "");
    const startedAt = performance.now();
    try {
      await eventually("another leader", async () => (await leader()) !== before);
      process.stdout.write(`${seconds(startedAt)} until another led, `);
      await changeTakesEffect(`hanging-${i}`);
      await accepted(`hanging-${i}`);
      process.stdout.write(`${seconds(startedAt)} until a change was accepted, `);
    } finally {
      await resume?.();
    }
    const after = await leader();
    await changeTakesEffect(`resumed-${i}`);
    await accepted(`resumed-${i}`);
    if ((await leader()) !== after) throw new Error(`${before} took the lease back from ${after}`);
  });

await kubectl("delete", "namespace", NS, "--wait=false");
git("worktree", "remove", "--force", former);

function git(...command: readonly string[]): void {
  execFileSync("git", command, { cwd: appRoot });
}

/** The pod that holds the Lease. */
async function leader(): Promise<string> {
  return kubectl("-n", CONTROLLER_NAMESPACE, "get", "lease", "tracegate", "-o", "jsonpath={.spec.holderIdentity}");
}

async function accepted(route: string): Promise<void> {
  await eventually(`the status of ${route}`, async () => {
    const status = await kubectl(
      ...["-n", NS, "get", "httproute", route],
      ...["-o", 'jsonpath={.status.parents[0].conditions[?(@.type=="Accepted")].status}'],
    );
    return status === "True";
  });
}

async function changeTakesEffect(name: string): Promise<void> {
  await apply(routeYaml(NS, name, "web", `${name}.example.com`, "/", "echo"));
  await eventually(name, async () => (await get({ address, host: `${name}.example.com` })).status === 200, 120);
}

/** Prints how many requests were sent during `work`; one that failed makes this process fail. */
async function measured(what: string, work: () => Promise<void>): Promise<void> {
  const load = new Load({ address, host: HOST, path: "/load" }, 8, REQUESTS_PER_SECOND);
  const startedAt = performance.now();
  process.stdout.write(`${what}: `);
  await work().finally(() => load.stop());
  const { requests, failures, milliseconds } = load;
  const slowest = Math.max(...milliseconds).toFixed(0);
  process.stdout.write(
    `${what}: ${seconds(startedAt)}, ${failures.length} of ${requests} requests failed, slowest ${slowest} ms\n`,
  );
  for (const failure of failures.slice(0, 5)) process.stdout.write(`  ${failure}\n`);
  if (failures.length > 0) process.exitCode = 1;
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}
