import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { testBackend } from "../../helpers/backend.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { fits, inChromium, press, shows, textOf, until, violations } from "../../helpers/web-view.ts";

/** Markup in the values of headers. */
const MARKUP = "<img src=x onerror=document.title='owned'>";
const EVIL = `商店 ${MARKUP}`;
const SECRET = "hunter2-secret";
const MANY = 120;

const backend = testBackend((request, response) => {
  response.statusCode = request.url?.startsWith("/cart") ? 500 : 200;
  response.end("hello");
});
let gateway: TestGateway;

before(async () => {
  const backends = [{ host: backend.host }];
  const routes = [
    {
      name: "cart",
      matches: [{ path: { pathPrefix: "/cart" } }],
      policies: { timeout: { requestTimeout: "5s" }, apiKey: { keys: [{ key: SECRET }], mode: "permissive" } },
      backends: [...backends, { host: "127.0.0.1:1", weight: 0 }],
    },
    { name: "never", matches: [{ path: { pathPrefix: "/cart" } }], backends },
    {
      name: "evil",
      hostnames: ["shop.example", "xn--czr694b.example"],
      matches: [
        { path: { exact: "/evil" }, headers: [{ name: "x-evil", value: { exact: EVIL } }] },
        { path: { exact: "/evil" }, headers: [{ name: "x-evil", value: { exact: MARKUP } }] },
      ],
      backends,
    },
    ...Array.from({ length: MANY }, (_, i) => ({
      name: `many-${i}`,
      matches: [{ path: { exact: `/many/${i}` } }],
      backends,
    })),
  ];
  const target = { gateway: { gatewayName: "default", gatewayNamespace: "default" } };
  gateway = await TestGateway.start({
    binds: [{ port: 0, listeners: [{ name: "web", routes }] }],
    policies: [{ name: { name: "patience" }, target, policy: { timeout: { requestTimeout: "9s" } } }],
  });
  const get = (path: string) => fetch(`http://127.0.0.1:${gateway.port()}${path}`).then((answer) => answer.text());
  for (const path of ["/cart", "/cart", "/many/7"]) await get(path);
});
after(() => gateway?.stop());

const open = inChromium();
const place = (hash: string): string => `${gateway.url("admin")}/ui/${hash}`;
const FIRST = "document.querySelector('tbody tr td:nth-child(2)').textContent.trim()";

test("the list of routes: the order of precedence, another one, a search, and pages", async (t) => {
  const page = await open(t, place("#/routes"));
  if (page === undefined) return;
  await shows(page, "1 to 100");
  await until(page, `${FIRST} === 'default/evil'`);
  await shows(page, "last request");
  await page.evaluate("[...document.querySelectorAll('th a')].find((link) => link.textContent === 'requests').click()");
  await until(page, `${FIRST} === 'default/cart'`);
  assert.equal(await page.evaluate("document.querySelector('[aria-sort=descending]').textContent"), "requests ↓");
  const errors = await page.evaluate("document.querySelector('tbody a.bad').getAttribute('href')");
  assert.equal(errors, "#/requests?where=route+%3D%3D+%22default%2Fcart%22&errors=true");
  await page.evaluate("[...document.querySelectorAll('nav a')].find((link) => link.textContent === 'next').click()");
  await shows(page, "101 to 123");
  await page.evaluate("document.querySelector('[type=search]').focus()");
  await page.send("Input.insertText", { text: "NEVER" });
  await shows(page, "1 of 123 routes");
  await until(page, "document.querySelector('tbody .warn').textContent === 'default/cart'");
  assert.equal(await page.evaluate("location.hash"), "#/routes?search=NEVER&sort=requests");
  assert.deepEqual(page.messages, []);
});

test("which route would get a request: the winner with a link, why others lost, and the way to the whole answer", async (t) => {
  const page = await open(t, place("#/routes"));
  if (page === undefined) return;
  await shows(page, "1 to 100");
  await page.evaluate("document.querySelector('[name=url]').focus()");
  await page.send("Input.insertText", { text: "http://shop.example/evil" });
  await press(page, "Enter");
  await shows(page, "No route gets it");
  await page.evaluate("document.querySelector('[name=headers]').focus()");
  await page.send("Input.insertText", { text: `x-evil: ${MARKUP}` });
  await page.evaluate("document.querySelector('.which [type=submit]').focus()");
  await press(page, "Enter");
  await shows(page, "evil gets it");
  assert.deepEqual(await violations(page), []);
  const links = await page.evaluate(
    "[...document.querySelectorAll('.which a:not(.tree a)')].map((link) => link.getAttribute('href'))",
  );
  assert.deepEqual(links, [
    `#/routes/${encodeURIComponent("default/default/bind/0/web/default/evil")}`,
    `#/explain?${new URLSearchParams({ url: "http://shop.example/evil", header: `x-evil: ${MARKUP}` })}`,
  ]);
  await page.evaluate("document.querySelector('[name=url]').value = 'http://other.example/cart/1'");
  await page.evaluate("document.querySelector('.which [type=submit]').click()");
  await shows(page, "cart gets it");
  await shows(page, "route never");
  assert.equal(await page.evaluate("document.title"), "tracegate");
  await page.evaluate("document.querySelector('.which [type=reset]').click()");
  await until(page, "document.querySelector('.which .answer') === null");
  assert.deepEqual(page.messages, []);
});

test("a route: what it takes, its traffic, its backends, and its policies with their places", async (t) => {
  const page = await open(t, place("#/routes?sort=requests"));
  if (page === undefined) return;
  await shows(page, "default/cart");
  await page.evaluate("document.querySelector('tbody a').focus()");
  await press(page, "Enter");
  await shows(page, "Policies in effect");
  const text = await textOf(page);
  for (const part of ["Route default/cart", "path prefix /cart", "2 errors", "weight 0, 0 %", "gateway.yaml:"])
    assert.ok(text.includes(part), `${part} in ${text}`);
  const cells =
    "[...document.querySelectorAll('.policies tbody tr')].map((row) => row.cells[1].textContent + ' < ' + row.cells[4].textContent.split(' ')[0])";
  assert.deepEqual(await page.evaluate(cells), ["timeout < gateway", "apiKey < "]);
  await page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true");
  await shows(page, '"requestTimeout": "5s"');
  await shows(page, "<redacted>");
  assert.ok(!(await textOf(page)).includes(SECRET));
  await fits(page, 400, 1600);
  await page.evaluate("document.querySelector('.policies a').click()");
  await until(page, "location.hash === '#/policies/timeout'");
  await page.evaluate("location.hash = '#/routes/none'");
  await until(page, "document.querySelector('[role=alert]')?.textContent.includes('no route has the key')");
  assert.deepEqual(
    page.messages.filter((message) => !message.includes("404")),
    [],
  );
});

test("names and values are text, on a page that fits narrow and wide windows, light and dark", async (t) => {
  const page = await open(t, place("#/routes?search=evil"));
  if (page === undefined) return;
  await shows(page, EVIL);
  assert.equal(await page.evaluate("document.title"), "tracegate");
  await fits(page, 400, 1600);
  assert.deepEqual(page.messages, []);
});
