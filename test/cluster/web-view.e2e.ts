/** `tgctl ui` over the port-forwards of a real API server: three proxies of a Gateway as one, also while a pod is replaced. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, test } from "node:test";
import type { AdminAnswers } from "../../src/admin/plane/answers.ts";
import type { Merged } from "../../src/admin/plane/replicas.ts";
import { appRoot } from "../../src/base/app-root.ts";
import { get } from "./lib/http.ts";
import { applyReplicated } from "./lib/replicated.ts";
import { eventually, kubectl } from "./lib/tools.ts";

const NS = "e2e-web-view";
const HOST = "web-view.example.com";
let address = "";

before(async () => {
  address = await applyReplicated(NS, HOST);
});
after(() => kubectl("delete", "namespace", NS, "--wait=false"));

test("tgctl ui shows the replicas as one gateway, and follows when a pod is replaced", async (t) => {
  const words = ["ui", "gateway/web", "-n", NS, "--no-open"];
  const child = spawn(`${appRoot}bin/tgctl`, words, { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  const [text] = await once(child.stdout.setEncoding("utf8"), "data");
  const [url = ""] = String(text).split("\n");
  const ask = async <Endpoint extends keyof AdminAnswers>(endpoint: Endpoint, rest = "") => {
    const response = await fetch(new URL(`..${endpoint}${rest}`, url));
    assert.equal(response.status, 200);
    return (await response.json()) as AdminAnswers[Endpoint] & Merged;
  };
  const page = await (await fetch(url)).text();
  assert.match(page, /<script type="module" src="main-/);

  const first = await ask("/overview");
  assert.equal(first.replicas.length, 3);
  assert.deepEqual(first.replicas.map(({ problem }) => problem).filter(Boolean), []);
  assert.equal(new Set(first.replicas.map(({ configuration }) => configuration?.hash)).size, 1);
  const names = new Set(first.replicas.map(({ name }) => name));
  await eventually("requests of all pods in one list", async () => {
    await get({ address, host: HOST, path: "/shown" });
    const { records } = await ask("/requests", "?limit=1000");
    return [...names].every((name) => records.some(({ pod }) => pod === name));
  });

  const [gone = ""] = names;
  await kubectl("delete", "pod", "-n", NS, gone, "--wait=false");
  await eventually("the pod that follows, in place of the one that is gone", async () => {
    const { replicas } = await ask("/overview");
    const now = replicas.filter(({ problem }) => problem === undefined).map(({ name }) => name);
    return now.length === 3 && !now.includes(gone);
  });
  const exit = once(child, "exit");
  child.kill("SIGINT");
  assert.equal((await exit)[0], 130);
});
