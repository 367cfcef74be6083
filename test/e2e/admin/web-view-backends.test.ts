import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { closedPort } from "../../helpers/raw-peer.ts";
import { fits, inChromium, press, shows, until, violations } from "../../helpers/web-view.ts";

const MANY = 7;

/** Responds to requests and health checks with this status. */
let status = 200;
const server = createServer((_request, response) => {
  response.statusCode = status;
  response.end("hello");
});
let gateway: TestGateway;
let port: number;
let closed: number;

before(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  port = (server.address() as AddressInfo).port;
  closed = await closedPort();
  const active = {
    http: { path: "/healthz" },
    interval: "100ms",
    timeout: "10s",
    unhealthyThreshold: 1,
    healthyThreshold: 1,
  };
  const service = { name: "shop/cart.shop.svc.cluster.local", port: 80 };
  gateway = await TestGateway.start({
    binds: [
      {
        port: 0,
        listeners: [
          {
            routes: [
              { name: "cart", matches: [{ path: { pathPrefix: "/cart" } }], backends: [{ service }] },
              {
                name: "gone",
                matches: [{ path: { pathPrefix: "/gone" } }],
                backends: [{ host: `127.0.0.1:${closed}`, policies: { health: { eviction: { duration: "1h" } } } }],
              },
              { name: "pool", matches: [{ path: { pathPrefix: "/pool" } }], backends: [{ backend: "/pool" }] },
              { name: "store", backends: [{ backend: "/store", weight: 3 }] },
            ],
          },
        ],
      },
    ],
    backends: [
      { name: "store", host: `127.0.0.1:${port}`, policies: { health: { active } } },
      { name: "pool", endpoints: [{ host: `localhost:${port}`, weight: 2 }, { host: "name.invalid:80" }] },
    ],
    services: [{ name: "cart", namespace: "shop", hostname: "cart.shop.svc.cluster.local", ports: { 80: 80 } }],
    workloads: Array.from({ length: MANY }, (_, i) => ({
      uid: `cart-${i}`,
      name: `cart-${i}`,
      namespace: "shop",
      workloadIps: [`127.0.0.${i + 1}`],
      status: i === 5 ? "unhealthy" : "healthy",
      services: { "shop/cart.shop.svc.cluster.local": { 80: port } },
      locality: { region: "eu", zone: "東京 <b>" },
    })),
  });
  for (const path of ["/gone", "/pool", "/pool", "/"])
    await (await fetch(`http://127.0.0.1:${gateway.port()}${path}`)).text();
});
after(async () => {
  await gateway?.stop();
  server.close();
});

const open = inChromium();
const place = (hash: string): string => `${gateway.url("admin")}/ui/${hash}`;

/** The text of the row that begins with this. */
function row(begins: string): string {
  return `[...document.querySelectorAll('tbody tr')].map((row) => row.textContent).find((text) => text.startsWith(${JSON.stringify(begins)}))`;
}

test("the list of backends: endpoints, why some get no requests, only the failing ones, and a search", async (t) => {
  const page = await open(t, place("#/backends"));
  if (page === undefined) return;
  await shows(page, "4 backends");
  await until(page, `/healthy/.test(${row("/store")})`);
  const gone = String(await page.evaluate(row(`127.0.0.1:${closed}`)));
  assert.match(gone, /evicteduntil \d\d:\d\d:\d\d, failures in a row: 1/);
  assert.match(String(await page.evaluate(row("shop/cart"))), /1\/7 failing127\.0\.0\.6:\d+notReady/);
  await shows(page, "and 2 more endpoints");
  await page.evaluate("document.querySelector('search button').click()");
  await shows(page, "3 backends");
  // A letter that comes before the page shows the click must not take the click back.
  await page.evaluate(`
    const [button, input] = ["button", "input"].map((name) => document.querySelector("search " + name));
    button.click();
    input.value = "s";
    input.dispatchEvent(new Event("input", { bubbles: true }));
    input.focus()`);
  await page.send("Input.insertText", { text: "tor" });
  await shows(page, "1 backend");
  await until(page, "document.querySelectorAll('tbody tr').length === 1");
  assert.equal(await page.evaluate("decodeURIComponent(location.hash)"), "#/backends?find=stor");
  await page.evaluate("document.querySelector('tbody a').focus()");
  await press(page, "Enter");
  await shows(page, "Used by 1 route");
  assert.equal(await page.evaluate("decodeURIComponent(location.hash)"), "#/backends//store");
  assert.deepEqual(page.messages, []);
});

test("the page of a backend follows its health, and keeps its changes", async (t) => {
  const page = await open(t, place(`#/backends/${encodeURIComponent("/store")}`));
  if (page === undefined) return;
  await until(page, `/default\\/store\\s+3/.test(${row("default/store")})`);
  // Where it is written, and where the route names it.
  assert.equal(await page.evaluate("document.querySelectorAll('article a[href*=config]').length"), 2);
  status = 503;
  await shows(page, "unhealthy: status 503");
  status = 200;
  await until(page, "/ healthy$/.test(document.querySelector('summary').textContent)");
  await page.evaluate("document.querySelector('summary').click()");
  assert.match(
    String(await page.evaluate("document.querySelector('details ul').textContent")),
    /unhealthy: status 503/,
  );
  assert.equal(await page.evaluate("document.querySelectorAll('rect.unhealthy').length"), 1);
  await page.evaluate(`location.hash = '#/backends/nowhere'`);
  await shows(page, 'no backend has the key "nowhere"');
  assert.deepEqual(
    page.messages.filter((message) => !message.includes("404")),
    [],
  );
});

test("the page of a pool: names with their addresses, weights, and names without any", async (t) => {
  const page = await open(t, place(`#/backends/${encodeURIComponent("/pool")}`));
  if (page === undefined) return;
  await shows(page, "1 gets no requests");
  const unresolved = String(await page.evaluate(row("name.invalid:80")));
  assert.match(unresolved, /^name\.invalid:80unresolved/);
  // In the address, and once in the error.
  assert.equal(unresolved.split("name.invalid").length, 3, unresolved);
  const found = `[...document.querySelectorAll('tbody tr')].find((row) => row.textContent.includes(' localhost'))`;
  const cells = await page.evaluate(`[...${found}.cells].map(({ textContent }) => textContent)`);
  assert.ok(Array.isArray(cells));
  assert.match(cells[0], new RegExp(`^(127\\.0\\.0\\.1|\\[::1\\]):${port} localhost$`));
  assert.equal(cells[10], "2");
  assert.match(cells[11], / ago$/);
  await fits(page, 400, 1400);
  assert.deepEqual(page.messages, []);
});

test("probe now: the page shows its token, gets a new one when the gateway does not know it, and shows what came back", async (t) => {
  const page = await open(t, place(`#/backends/${encodeURIComponent("/store")}`));
  if (page === undefined) return;
  await shows(page, "Probe now");
  // As a gateway that has been started again answers.
  await page.evaluate(`{
    const send = window.fetch;
    let asked = 0;
    window.fetch = (path, init) => {
      const isFirst = String(path).includes("/probe/") && asked++ === 0;
      return send(path, isFirst ? { ...init, headers: { "x-tracegate-page-token": "old" } } : init);
    };
  }`);
  await page.evaluate(
    "[...document.querySelectorAll('button')].find(({ textContent }) => textContent === 'Probe now').focus()",
  );
  await press(page, "Enter");
  await shows(page, "1 probe: healthy");
  assert.match(
    String(await page.evaluate("document.querySelector('[aria-label=Probes] tbody tr').textContent")),
    new RegExp(`^127\\.0\\.0\\.1:${port}healthy[\\d.]+msGET /healthzstatus 200$`),
  );
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(
    page.messages.filter((message) => !message.includes("403")),
    [],
  );
});

test("both pages fit narrow and wide windows, light and dark", async (t) => {
  const page = await open(t, place("#/backends"));
  if (page === undefined) return;
  await shows(page, "4 backends");
  for (const hash of ["#/backends", "#/backends/service%2Fshop%2Fcart.shop.svc.cluster.local"]) {
    await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
    await shows(page, hash === "#/backends" ? "4 backends" : "cart-6 · eu · 東京 <b> · nearest");
    await fits(page, 400, 2560);
  }
  assert.deepEqual(page.messages, []);
});
