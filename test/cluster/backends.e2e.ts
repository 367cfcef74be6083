/** No request may fail when backends come and go: three proxies, three pods behind a Service, 50 requests per second. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Load } from "./lib/http.ts";
import { applyReplicated } from "./lib/replicated.ts";
import { eventually, getJson, kubectl } from "./lib/tools.ts";

const NS = "e2e-backends";
const HOST = "backends.example.com";
const PER_SECOND = 50;
let address = "";

before(async () => {
  address = await applyReplicated(NS, HOST);
});

after(() => kubectl("delete", "namespace", NS, "--wait=false"));

interface Pods {
  readonly items: readonly { readonly metadata: { readonly name: string; readonly deletionTimestamp?: string } }[];
}

async function pods(): Promise<string[]> {
  const { items } = await getJson<Pods>("-n", NS, "pods", "-l", "app=echo");
  return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined).map(({ metadata }) => metadata.name);
}

/** All wanted pods are ready, and no other one is left. */
async function scaled(replicas: number): Promise<void> {
  await kubectl("-n", NS, "scale", "deployment/echo", `--replicas=${replicas}`);
  await settled(replicas);
}

async function settled(replicas: number): Promise<void> {
  await kubectl("-n", NS, "rollout", "status", "deployment/echo", "--timeout=180s");
  const all = async (): Promise<number> => (await getJson<Pods>("-n", NS, "pods", "-l", "app=echo")).items.length;
  await eventually(`${replicas} pods`, async () => (await all()) === replicas, 120);
}

/** Runs `work` while clients send requests, and until the proxies have seen its effects; no request may fail. */
async function losesNothing(work: () => Promise<void>): Promise<void> {
  const load = new Load({ address, host: HOST, path: "/load" }, 8, PER_SECOND);
  const before = async (count: number): Promise<void> => {
    const goal = load.requests + count;
    await eventually(`${count} requests`, async () => load.requests >= goal, 60);
  };
  try {
    await before(PER_SECOND);
    await work();
    await before(10 * PER_SECOND);
  } finally {
    await load.stop();
  }
  const { requests, failures } = load;
  assert.deepEqual(failures.slice(0, 5), [], `${failures.length} of ${requests} requests failed`);
}

test("a pod that is deleted", { timeout: 300_000 }, () =>
  losesNothing(async () => {
    const [pod = ""] = await pods();
    await kubectl("-n", NS, "delete", "pod", pod, "--wait=true");
    await settled(3);
  }),
);

test("a pod that is deleted by force", { timeout: 300_000 }, () =>
  losesNothing(async () => {
    const [pod = ""] = await pods();
    await kubectl("-n", NS, "delete", "pod", pod, "--grace-period=0", "--force");
    await settled(3);
  }),
);

test("a rollout", { timeout: 400_000 }, () =>
  losesNothing(async () => {
    await kubectl("-n", NS, "rollout", "restart", "deployment/echo");
    await settled(3);
  }),
);

test("from five pods to one, and back", { timeout: 400_000 }, async () => {
  await scaled(5);
  await losesNothing(() => scaled(1));
  await losesNothing(() => scaled(5));
});
