/** Two gateways as the pods of a Gateway, in one view that `tgctl ui` serves. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import type { AdminAnswers } from "../../../src/admin/plane/answers.ts";
import type { Merged } from "../../../src/admin/plane/replicas.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { ofGateway, testCluster } from "../../helpers/kube/tgctl.ts";
import { TGCTL } from "../../helpers/programs.ts";
import { until } from "../../helpers/until.ts";
import { inChromium, shows, violations } from "../../helpers/web-view.ts";

const open = inChromium();

function config(...more: readonly string[]) {
  const names = ["shop", "admin", ...more];
  const routes = names.map((name) => ({
    name,
    matches: [{ path: { pathPrefix: `/${name}` } }],
    policies: { directResponse: { status: name === "shop" ? 200 : 503 } },
  }));
  const store = { name: "store", matches: [{ path: { pathPrefix: "/store" } }], backends: [{ backend: "/store" }] };
  return {
    binds: [{ port: 0, listeners: [{ routes: [...routes, store] }] }],
    backends: [{ name: "store", host: "127.0.0.1:1" }],
  };
}

async function cluster(t: TestContext, pods: Readonly<Record<string, TestGateway>>) {
  const made = await testCluster(t);
  made.gateway("web");
  const add = (name: string, gateway: TestGateway): void => {
    made.pod(name, { labels: ofGateway("web") });
    made.connect(name, 15000, Number(new URL(gateway.url("admin")).port));
  };
  for (const [name, gateway] of Object.entries(pods)) add(name, gateway);
  const env = { PATH: process.env.PATH, HOME: made.folder, KUBECONFIG: made.kubeconfig };
  const child = spawn(TGCTL, ["ui", "gateway/web", "-n", "shop", "--no-open"], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  const [text] = await once(child.stdout.setEncoding("utf8"), "data");
  const [url = ""] = String(text).split("\n");
  /** The answer to a question of the view, and its status. */
  const ask = async <Endpoint extends keyof AdminAnswers>(endpoint: Endpoint, rest = "", body?: object) => {
    const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const response = await fetch(new URL(`..${endpoint}${rest}`, url), init);
    return { status: response.status, answer: (await response.json()) as AdminAnswers[Endpoint] & Merged };
  };
  return { ...made, add, url, ask, child };
}

async function send(gateway: TestGateway, path: string, times: number): Promise<void> {
  for (let i = 0; i < times; i++) await (await fetch(`http://127.0.0.1:${gateway.port()}${path}`)).text();
}

test("replicas are one gateway: what each knows is added up, and keeps the name of its pod", async (t) => {
  await using one = await TestGateway.start(config());
  await using two = await TestGateway.start(config());
  const { server, url, ask, add, child } = await cluster(t, { "web-1": one, "web-2": two });
  await send(one, "/shop/a", 2);
  await send(two, "/shop/b", 3);
  await send(one, "/admin/one", 1);
  await send(two, "/admin/two", 2);

  const list = await until(async () => {
    const { answer } = await ask("/requests", "?limit=1000");
    return answer.records.length === 8 && answer;
  });
  assert.equal(list.requests, 8);
  assert.deepEqual(Object.groupBy(list.records, ({ pod = "" }) => pod)["web-2"]?.length, 5);
  assert.deepEqual(
    list.replicas.map(({ name, problem }) => [name, problem]),
    [
      ["web-1", undefined],
      ["web-2", undefined],
    ],
  );
  assert.equal((await ask("/requests", "?limit=3")).answer.records.length, 3);
  const { answer: routes } = await ask("/routes", "?sort=requests");
  assert.deepEqual(
    routes.routes.map(({ name, requests, errors }) => [name, requests, errors]),
    [
      ["default/shop", 5, 0],
      ["default/admin", 3, 3],
      ["default/store", 0, 0],
    ],
  );
  const { answer: overview } = await ask("/overview");
  // Their files are at different places, but the same route of each decided.
  assert.deepEqual(
    overview.failures?.groups.map(({ route, count, example }) => [route, count, example.pod]),
    [["default/admin", 3, "web-2"]],
  );
  assert.equal(overview.listeners.length, 1);

  // Both have a record 0-1 or so: the pod tells which one is meant.
  const newest = list.records.find(({ path, pod }) => path === "/admin/two" && pod === "web-2");
  const key = `web-2:${newest?.worker}-${newest?.number}`;
  assert.equal((await ask("/requests/", encodeURIComponent(key))).answer.records[0]?.path, "/admin/two");
  assert.equal((await ask("/explain", "", { id: key })).answer.record?.pod, "web-2");
  assert.equal((await ask("/explain", "", { id: newest?.id })).answer.record?.path, "/admin/two");
  assert.equal((await ask("/explain", "", { id: "nobody" })).status, 400);
  assert.equal((await ask("/requests/", "nobody")).status, 404);
  const { answer: rehearsed } = await ask("/explain", "", { request: { url: "http://shop.example/shop/" } });
  assert.equal(rehearsed.outcomes[0]?.route, "default/shop");
  assert.equal(rehearsed.replicas, undefined, "any replica can answer for all, so only one is asked");

  const traced = await fetch(new URL("../debug/trace?expression=true", url));
  assert.match(traced.headers.get("content-type") ?? "", /^text\/event-stream/);
  const events = traced.text();
  // The other replica may begin to wait later.
  let isTraced = false;
  void events.then(() => {
    isTraced = true;
  });
  while (!isTraced) await send(two, "/shop/traced", 1);
  assert.match(await events, /"path":"\/shop\/traced"[\s\S]*requestFinished/);

  const page = await open(t, `${url}#/requests`);
  if (page !== undefined) {
    await shows(page, "/shop/traced");
    await shows(page, "2 replicas");
    const pods = "[...document.querySelectorAll('.row .column-pod')].map((each) => each.textContent).join()";
    assert.match(String(await page.evaluate(pods)), /\bweb-2\b/);
    await page.evaluate(`location.hash = "#/r/${encodeURIComponent(key)}"`);
    await shows(page, "/admin/two");
    await page.evaluate('location.hash = "#/"');
    await shows(page, "default/admin");
    const table =
      "[...document.querySelectorAll('[aria-label=Replicas] tbody tr')].map((row) => row.innerText.trim().split(/\\t/))";
    assert.deepEqual(await page.evaluate(table), [
      ["web-1", "1", "1 of 1 serving"],
      ["web-2", "1", "1 of 1 serving"],
    ]);
    assert.deepEqual(await violations(page), []);
    // A listener leads to its routes.
    await page.evaluate("document.querySelector('[aria-label=Listeners] .number a').click()");
    await shows(page, "of the listener default/default/bind/0/");
    await shows(page, "3 routes");
    await page.evaluate("location.hash = '#/backends//store'");
    await shows(page, "Probe now");
    await page.evaluate(
      "[...document.querySelectorAll('button')].find((each) => each.textContent === 'Probe now').click()",
    );
    await shows(page, "2 probes: 2 failed");
    const cells =
      "[...document.querySelectorAll('[aria-label=Probes] tbody tr')].map((row) => row.cells[1].textContent)";
    assert.deepEqual(await page.evaluate(cells), ["web-1", "web-2"]);
    assert.deepEqual(await violations(page), []);
    await page.evaluate('location.hash = "#/"');
    await two.stop();
    await shows(page, "What web-2 knows is missing here");
    await shows(page, "connection refused");
    await using three = await TestGateway.start(config("more"));
    add("web-3", three);
    await shows(page, "3 replicas");
    await shows(page, "Not all replicas have the same configuration");
    server.delete("Pod", "shop/web-2");
    await shows(page, "2 replicas");
    assert.equal(await page.evaluate("document.body.textContent.includes('What web-2 knows')"), false);
    assert.deepEqual(await violations(page), []);
  }
  const exit = once(child, "exit");
  child.kill("SIGINT");
  assert.equal((await exit)[0], 130);
});
