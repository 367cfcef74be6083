import assert from "node:assert/strict";
import { after, before, suite, type TestContext, test } from "node:test";
import { bundleWebView } from "../../../scripts/bundle/web-view.ts";
import { exchangeRaw } from "../../helpers/admin/raw-request.ts";
import { testBackend } from "../../helpers/backend.ts";
import type { Page } from "../../helpers/chromium.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { inChromium, look, press, shows, textOf, until } from "../../helpers/web-view.ts";

/** The parser of requests refuses a bare `<` in a path, so these are markup for what decodes them. */
const EVIL_PATH = "/admin/&lt;img&nbsp;src=x&nbsp;onerror=document.title='owned'&gt;%3Cscript%3E";
/** In a link that somebody sends; the gateway takes no such id from a request. */
const EVIL_ID = "<img/src=x/onerror=document.title='owned'>";
const EVIL_PLACE = "#/r/evil-1";

const backend = testBackend((request, response) => {
  response.statusCode = request.url?.startsWith("/broken") ? 502 : 200;
  response.end("hello");
});
let gateway: TestGateway;
let port: number;

before(async () => {
  // A run of all tests has it already, in the package.
  await bundleWebView();
  const backends = [{ host: backend.host }];
  const routes = [
    {
      name: "admin",
      matches: [{ path: { pathPrefix: "/admin" } }],
      policies: { authorization: { rules: [{ deny: 'request.path != "/admin/ok"' }] } },
      backends,
    },
    {
      name: "view",
      matches: [{ path: { pathPrefix: "/gateway" } }],
      policies: { urlRewrite: { path: { prefix: "/" } } },
      backends: [{ internal: "forward" }],
    },
    {
      name: "staff",
      matches: [{ path: { pathPrefix: "/staff" } }],
      policies: { authorization: { rules: [{ deny: 'request.headers["x-role"] == "guest"' }] } },
      backends,
    },
    { name: "shop", matches: [{ path: { pathPrefix: "/" } }], backends },
  ];
  gateway = await TestGateway.start({ binds: [{ port: 0, listeners: [{ name: "web", routes }] }] });
  port = gateway.port();
  for (let i = 0; i < 60; i++) await (await fetch(`http://127.0.0.1:${port}/cart/${i}`)).text();
  await (await fetch(`http://127.0.0.1:${port}/broken`)).text();
  // fetch would escape the path.
  await exchangeRaw(
    `127.0.0.1:${port}`,
    `GET ${EVIL_PATH} HTTP/1.1\r\nhost: shop.example\r\nx-request-id: evil-1\r\nconnection: close\r\n\r\n`,
  );
});
after(() => gateway.stop());

suite("files", () => {
  const view = (path: string, headers: Readonly<Record<string, string>> = {}) =>
    fetch(`${gateway.url("admin")}${path}`, { headers, redirect: "manual" });

  test("browsers are sent to the view, other clients get the list", async () => {
    const browser = await view("/", { accept: "text/html,application/xhtml+xml,*/*;q=0.8" });
    assert.deepEqual([browser.status, browser.headers.get("location")], [302, "ui/"]);
    assert.match(await (await view("/", { accept: "*/*" })).text(), /^tracegate .* admin server\n/);
    assert.equal((await view("/ui")).headers.get("location"), "ui/");
  });

  test("the page runs nothing but its own file, and may not be embedded", async () => {
    const page = await view("/ui/");
    const policy = page.headers.get("content-security-policy") ?? "";
    for (const part of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"])
      assert.ok(policy.includes(part), part);
    assert.ok(!policy.includes("unsafe"));
    assert.equal(page.headers.get("x-content-type-options"), "nosniff");
    assert.equal(page.headers.get("referrer-policy"), "no-referrer");
    const text = await page.text();
    assert.doesNotMatch(text, /<script>| on\w+=| style=|https?:/);
    assert.match(text, /<noscript>[\s\S]*tgctl recent[\s\S]*<\/noscript>/);
  });

  test("files with a hash in their name are kept forever, the page is not; both come compressed to those who take it", async () => {
    const [, script] = /src="(main-[0-9a-f]+\.js)"/.exec(await (await view("/ui/")).text()) ?? [];
    const plain = await view(`/ui/${script}`, { "accept-encoding": "identity" });
    const small = await view(`/ui/${script}`, { "accept-encoding": "br, gzip" });
    assert.match(plain.headers.get("cache-control") ?? "", /immutable/);
    assert.equal((await view("/ui/")).headers.get("cache-control"), "no-cache");
    assert.deepEqual([plain.headers.get("content-encoding"), small.headers.get("content-encoding")], [null, "gzip"]);
    assert.equal(await plain.text(), await small.text());
    assert.equal(
      (await view(`/ui/${script}`, { "accept-encoding": "gzip;q=0" })).headers.get("content-encoding"),
      null,
    );
  });

  test("no other file can be read", async () => {
    for (const path of ["/ui/nothing.js", "/ui/..%2fpackage.json", "/ui/main.js.gz", "/ui/%2e%2e%2findex.html"])
      assert.equal((await view(path)).status, 404, path);
  });
});

test("config.ui.enabled: false shows no view", async () => {
  await using off = await TestGateway.start({ config: { ui: { enabled: false } }, binds: [] });
  assert.equal((await fetch(`${off.url("admin")}/ui/`)).status, 403);
  const list = await fetch(`${off.url("admin")}/`, { headers: { accept: "text/html" } });
  assert.match(await list.text(), /^tracegate /);
});

suite("in Chromium", () => {
  const openUrl = inChromium();
  const open = (t: TestContext, hash: string, base = gateway.url("admin")): Promise<Page | undefined> =>
    openUrl(t, `${base}/ui/${hash}`);

  test("the list and a request by keyboard alone", async (t) => {
    const page = await open(t, "#/requests");
    if (page === undefined) return;
    await shows(page, "62 requests");
    await shows(page, "following the newest");
    for (const key of ["j", "j", "k"]) await press(page, key);
    await shows(page, "standing still, 0 newer");
    await (await fetch(`http://127.0.0.1:${port}/later`)).text();
    await shows(page, "standing still, 1 newer");
    assert.doesNotMatch(await textOf(page), /\/later/);
    await press(page, "f");
    await shows(page, "/later");
    await press(page, "g");
    await press(page, "j");
    // The first of the list at the start, which is now the second.
    await press(page, "Enter");
    await shows(page, "route default/admin");
    await shows(page, "authorization failed");
    await shows(page, "gateway.yaml:");
    await shows(page, 'request.path != "/admin/ok"');
    assert.deepEqual(page.messages, []);
  });

  test("the end of the list has the focus when G is pressed, though most rows do not exist", async (t) => {
    const page = await open(t, "#/requests");
    if (page === undefined) return;
    await shows(page, "requests");
    await shows(page, "/cart/59");
    const rows = await page.evaluate("document.querySelectorAll('.row').length");
    assert.ok(Number(rows) < 50, `${rows} rows`);
    await press(page, "G");
    await until(page, "document.activeElement.textContent.includes('/cart/0')");
  });

  test("a filter is part of the address, and its mistakes are explained", async (t) => {
    const page = await open(t, `#/requests?where=${encodeURIComponent("response.code == 502")}`);
    if (page === undefined) return;
    await shows(page, "/broken");
    await shows(page, "1 request ");
    await press(page, "/");
    await until(page, "document.activeElement.role === 'combobox'");
    await page.send("Input.insertText", { text: " &&" });
    await press(page, "Enter");
    await until(page, "document.querySelector('[role=alert]')?.textContent.startsWith('where: ')");
    assert.match(String(await page.evaluate("location.hash")), /%26%26/);
  });

  test("what a client wrote is text, on each page", async (t) => {
    for (const hash of ["#/", "#/requests", EVIL_PLACE]) {
      const page = await open(t, hash);
      if (page === undefined) return;
      await shows(page, EVIL_PATH);
      assert.equal(await page.evaluate("document.title"), "tracegate", hash);
      assert.equal(await page.evaluate("document.querySelectorAll('main script, main img').length"), 0, hash);
      assert.deepEqual(page.messages, [], hash);
      const origins = new Set(page.requests.map((url) => new URL(url).origin));
      assert.deepEqual([...origins], [gateway.url("admin")]);
    }
  });

  test("the view works behind a route of the gateway, with a prefix", async (t) => {
    const page = await open(t, EVIL_PLACE, `http://127.0.0.1:${port}/gateway`);
    if (page === undefined) return;
    await shows(page, "What decided");
    await shows(page, "authorization failed");
    assert.deepEqual(page.messages, []);
  });

  test("a lost connection is shown, what is listed stays, and the list goes on by itself", async (t) => {
    const page = await open(t, "#/requests");
    if (page === undefined) return;
    await shows(page, "/cart/59");
    const conditions = { latency: 0, downloadThroughput: -1, uploadThroughput: -1 };
    await page.send("Network.emulateNetworkConditions", { ...conditions, offline: true });
    await until(page, "document.querySelector('[role=alert]')?.textContent.includes('Trying again')");
    await shows(page, "/cart/59");
    await (await fetch(`http://127.0.0.1:${port}/meanwhile`)).text();
    await page.send("Network.emulateNetworkConditions", { ...conditions, offline: false });
    await shows(page, "/meanwhile");
    await until(page, "document.querySelector('[role=alert]') === null");
  });

  test("a request that an unrecorded field decided: what follows about the field, as tgctl explain words it", async (t) => {
    const headers = { "x-role": "guest", "x-request-id": "guest-1" };
    assert.equal((await fetch(`http://127.0.0.1:${port}/staff`, { headers })).status, 403);
    const page = await open(t, "#/r/guest-1");
    if (page === undefined) return;
    await shows(page, 'It follows that `request.headers["x-role"] == "guest"` is true.');
  });

  test("the headings of the list stand above their columns, beside a scroll bar", async (t) => {
    const page = await open(t, "#/requests");
    if (page === undefined) return;
    await shows(page, "/cart/59");
    for (const width of [1400, 800, 500]) {
      await look(page, "light", width);
      const edges = (row: string): Promise<unknown> =>
        page.evaluate(
          `[...document.querySelectorAll('${row} > span')].map((cell) => cell.getBoundingClientRect().right)`,
        );
      assert.deepEqual(await edges(".columns"), await edges("li:first-child > .row"), `${width} pixels`);
    }
  });

  test("the overview needs no other page; those come after it, and again if they did not", async (t) => {
    const page = await open(t, "#/");
    if (page === undefined) return;
    await until(page, "performance.getEntriesByType('resource').some(({ name }) => name.includes('/others-'))");
    const paths = page.requests.map((url) => new URL(url).pathname);
    assert.ok(paths.indexOf("/overview") < paths.findIndex((path) => path.startsWith("/ui/others-")), String(paths));

    await page.send("Network.setBlockedURLs", { urls: ["*/ui/others-*"] });
    await page.send("Network.setCacheDisabled", { cacheDisabled: true });
    await page.open("about:blank");
    await page.open(`${gateway.url("admin")}/ui/#/routes`);
    await until(
      page,
      "/load the page again[^]*Trying again/.test(document.querySelector('[role=alert]')?.textContent)",
    );
    await page.send("Network.setBlockedURLs", { urls: [] });
    await shows(page, "default/shop");
    await until(page, "document.querySelector('[role=alert]') === null");
  });

  test("an id without a record says so", async (t) => {
    const page = await open(t, `#/r/${encodeURIComponent(EVIL_ID)}`);
    if (page === undefined) return;
    await until(page, "document.querySelector('[role=alert]')?.textContent.startsWith('no record of the request')");
    await shows(page, EVIL_ID);
    assert.equal(await page.evaluate("document.title"), "tracegate");
  });
});
