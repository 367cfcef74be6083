/** What a page of the web view does while the gateway changes, is slow or is lost. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { appRoot } from "../../../src/base/app-root.ts";
import { testBackend } from "../../helpers/backend.ts";
import { freePort } from "../../helpers/free-ports.ts";
import { GatewayProcess, TestGateway } from "../../helpers/gateway.ts";
import { inChromium, shows, until } from "../../helpers/web-view.ts";

const KILLABLE = pathToFileURL(`${appRoot}test/helpers/killable.ts`).href;

const backend = testBackend();

const open = inChromium();

/** A route for each prefix; with `admin`, the address of the admin server. */
function configuration(prefixes: readonly string[], admin = "127.0.0.1:0"): object {
  const backends = [{ host: backend.host }];
  const routes = prefixes.map((prefix) => ({
    name: `at-${prefix.slice(1)}`,
    matches: [{ path: { pathPrefix: prefix } }],
    backends,
  }));
  return { config: { adminAddr: admin }, binds: [{ port: 0, listeners: [{ name: "web", routes }] }] };
}

async function send(gateway: Pick<TestGateway, "port">, path: string, id = "some"): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${gateway.port()}${path}`, { headers: { "x-request-id": id } });
  await answer.text();
}

test("a reload, a rejected one and a killed worker: open pages say so, and go on", async (t) => {
  const env = { NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ""} --import ${KILLABLE}` };
  await using gateway = await GatewayProcess.start(configuration(["/shop"]), { env });
  await send(gateway, "/shop/before", "before");
  const overview = await open(t, `${gateway.url("admin")}/ui/#/`);
  const requests = await open(t, `${gateway.url("admin")}/ui/#/requests`);
  if (overview === undefined || requests === undefined) return;
  await shows(overview, "worker-0 serving 1");
  await shows(requests, "/shop/before");

  assert.equal(await gateway.reconfigure(configuration(["/shop", "/new"])), "applied");
  await send(gateway, "/new/after-reload");
  await shows(overview, "worker-0 serving 2");
  await shows(requests, "/new/after-reload");

  assert.equal(await gateway.reconfigure(configuration(["/shop", "no slash"])), "rejected");
  await shows(overview, "the newest was rejected");
  await shows(overview, "gateway.yaml:");

  gateway.process.kill("SIGUSR2");
  await gateway.until(() => gateway.lines.some(({ message }) => /^a worker died/.test(String(message))), "the death");
  await shows(overview, "worker-0 serving 2, died 1×");
  await send(gateway, "/new/after-death");
  await shows(requests, "/new/after-death");
  // Its record has outlived the worker, and the configuration of then.
  await requests.evaluate("location.hash = '#/r/before'");
  await shows(requests, "Configuration 1 was in effect then");
  await shows(requests, "What decided");
  assert.deepEqual([overview.messages, requests.messages], [[], []]);
});

test("a slow connection: the page says that it waits, then it has all", async (t) => {
  await using gateway = await TestGateway.start(configuration(["/shop"]));
  await send(gateway, "/shop/cart", "one");
  const page = await open(t, "about:blank");
  if (page === undefined) return;
  // Every text that the page shows, in the order in which they come; the document exists before its parts do.
  await page.send("Page.addScriptToEvaluateOnNewDocument", {
    source: `window.texts = new Set();
      new MutationObserver(() => window.texts.add(document.body?.textContent ?? "")).observe(document, { childList: true, characterData: true, subtree: true });`,
  });
  const slow = { offline: false, latency: 700, downloadThroughput: 100_000, uploadThroughput: 100_000 };
  await page.send("Network.emulateNetworkConditions", slow);
  await page.open(`${gateway.url("admin")}/ui/#/r/one`);
  await shows(page, "What decided");
  await until(page, "!document.body.textContent.includes('waiting')");
  const first = (text: string): Promise<unknown> =>
    page.evaluate(`[...window.texts].findIndex((each) => each.includes(${JSON.stringify(text)}))`);
  const order = await Promise.all(
    ["Loading the view", "waiting for the gateway", "Request one", "What decided"].map(first),
  );
  assert.ok(!order.includes(-1), String(order));
  assert.deepEqual(
    order,
    order.toSorted((a, b) => Number(a) - Number(b)),
  );
  assert.deepEqual(page.messages, []);
});

test("a gateway that is restarted: pages that ask once and pages that ask again find it by themselves", async (t) => {
  const admin = `127.0.0.1:${await freePort()}`;
  const first = await TestGateway.start(configuration(["/shop"], admin));
  const list = await open(t, `http://${admin}/ui/#/requests`);
  const routes = await open(t, `http://${admin}/ui/#/routes`);
  await first.stop();
  if (list === undefined || routes === undefined) return;
  const isLost = "/does not answer[^]*Trying again/.test(document.querySelector('[role=alert]')?.textContent)";
  for (const page of [list, routes]) await until(page, isLost);
  await list.evaluate("location.hash = '#/r/new'");
  await until(list, `document.querySelector('h1').textContent === 'Request new' && ${isLost}`);
  await using second = await TestGateway.start(configuration(["/shop"], admin));
  await send(second, "/shop/cart", "new");
  await shows(list, "What decided");
  await shows(routes, "at-shop");
});

test("a gateway that is newer than the page: it says what to do", async (t) => {
  await using gateway = await TestGateway.start(configuration(["/shop"]));
  const other = createServer(async (request, response) => {
    if (request.url === "/overview" || request.url?.startsWith("/requests")) {
      response.end('{"pages":[]}');
      return;
    }
    const answer = await fetch(`${gateway.url("admin")}${request.url}`);
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
    response.end(Buffer.from(await answer.arrayBuffer()));
  });
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  try {
    const page = await open(t, `http://127.0.0.1:${(other.address() as AddressInfo).port}/ui/#/`);
    if (page === undefined) return;
    await shows(page, "The gateway has another version than this page: load the page again.");
    await page.evaluate("location.hash = '#/requests'");
    await until(page, "document.querySelector('h1')?.textContent === 'Requests'");
    await shows(page, "The gateway has another version than this page: load the page again.");
    assert.deepEqual(page.messages, []);
  } finally {
    other.closeAllConnections();
    other.close();
  }
});
