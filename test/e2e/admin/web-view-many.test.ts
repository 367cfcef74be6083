/** Pages of the web view on a gateway with 10,000 routes. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { testBackend } from "../../helpers/backend.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { inChromium, press, shows, until } from "../../helpers/web-view.ts";

const ROUTES = 10_000;
/** Elements that a page may have: what is in the window, and some more. */
const ELEMENTS = 6000;

const backend = testBackend();
let gateway: TestGateway;

before(async () => {
  const backends = [{ host: backend.host }];
  const routes = Array.from({ length: ROUTES }, (_, i) => ({
    name: `route-${i}`,
    matches: [{ path: { pathPrefix: `/at/${i}` } }],
    backends,
  }));
  gateway = await TestGateway.start({ binds: [{ port: 0, listeners: [{ name: "web", routes }] }] });
  await (await fetch(`http://127.0.0.1:${gateway.port()}/at/7777/x`, { headers: { "x-request-id": "one" } })).text();
});
after(() => gateway?.stop());

const open = inChromium();

/** Places, and a text that each shows. */
const PLACES = {
  "#/": "10000",
  "#/requests": "route-7777",
  "#/r/one": "What decided",
  "#/routes": "10000 routes",
  "#/routes?search=route-7777": "1 of 10000 routes",
  "#/backends": "10000 backends",
  "#/explain?url=http://a.example/at/7777": "route-7777",
  "#/config?at=binds[0].listeners[0].routes[7777]": "route-7777",
} as const;

test("10,000 routes: each page shows what fits, and finds the others", async (t) => {
  const page = await open(t, `${gateway.url("admin")}/ui/#/`);
  if (page === undefined) return;
  for (const [hash, text] of Object.entries(PLACES)) {
    await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
    await shows(page, text);
    const elements = Number(await page.evaluate("document.querySelectorAll('*').length"));
    assert.ok(elements < ELEMENTS, `${hash} has ${elements} elements`);
  }
  // The end of a list that has no elements yet.
  await page.evaluate("location.hash = '#/requests'");
  await shows(page, "1 request");
  await press(page, "G");
  await until(page, "document.activeElement.textContent.includes('/at/7777')");
  assert.deepEqual(page.messages, []);
});
