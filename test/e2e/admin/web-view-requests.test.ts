import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { testBackend } from "../../helpers/backend.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { fits, inChromium, press, shows, textOf, until, violations } from "../../helpers/web-view.ts";

const backend = testBackend((request, response) => {
  response.statusCode = request.url?.startsWith("/broken") ? 502 : 200;
  response.end("hello");
});
let gateway: TestGateway;

before(async () => {
  const backends = [{ host: backend.host }];
  const routes = [
    { name: "named", matches: [{ path: { pathPrefix: "/named" } }], backends },
    { name: "shop", matches: [{ path: { pathPrefix: "/" } }], backends },
  ];
  gateway = await TestGateway.start({ binds: [{ port: 0, listeners: [{ name: "web", routes }] }] });
  for (const [method, path] of [
    ["GET", "/cart"],
    ["POST", "/cart"],
    ["GET", "/broken"],
    ["GET", "/named/one"],
    ["DELETE", "/named/two"],
  ] as const)
    await (await fetch(`http://127.0.0.1:${gateway.port()}${path}`, { method })).text();
});
after(() => gateway.stop());

const open = inChromium();
const where = "new URLSearchParams(location.hash.split('?')[1]).get('where')";

test("a click or a key makes a value a condition of the filter, and each condition can be removed", async (t) => {
  const page = await open(t, `${gateway.url("admin")}/ui/#/requests`);
  if (page === undefined) return;
  await shows(page, "5 requests");
  await page.evaluate(
    "[...document.querySelectorAll('.row button')].find((b) => b.textContent === 'default/named').click()",
  );
  await shows(page, "2 requests");
  await until(page, `document.querySelector('input[role=combobox]').value === 'route == "default/named"'`);
  // The newest is chosen: DELETE /named/two.
  await press(page, "j");
  await press(page, "m");
  await shows(page, "1 request ");
  assert.match(String(await page.evaluate(where)), / && request\.method == "DELETE"$/);
  const terms = "[...document.querySelectorAll('.terms button')]";
  assert.deepEqual(await page.evaluate(`${terms}.map((b) => b.ariaLabel)`), [
    "Remove the condition route default/named",
    "Remove the condition method DELETE",
  ]);
  await fits(page, 400, 2560);
  await page.evaluate(`${terms}[0].click()`);
  await until(page, `${where} === 'request.method == "DELETE"'`);
  await page.evaluate(`${terms}[0].click()`);
  await shows(page, "5 requests");
  // Nothing that a click can reach opens the request by chance, and the rest of the row does.
  await page.evaluate(
    "{ const row = document.querySelector('.row'); const { left, top } = row.getBoundingClientRect(); document.elementFromPoint(left + 20, top + 10).click(); }",
  );
  await shows(page, "What decided");
  // Both requests to the route ended like this one.
  await shows(page, "about 2 like this in the last 15 minutes (0 kept)");
  await page.evaluate("[...document.querySelectorAll('a')].find((a) => a.textContent.startsWith('about 2')).click()");
  await shows(page, "2 requests");
  assert.deepEqual(page.messages, []);
});

test("columns are chosen once for this browser, and the list says why it is empty", async (t) => {
  const page = await open(
    t,
    `${gateway.url("admin")}/ui/#/requests?where=${encodeURIComponent("response.code == 418")}`,
  );
  if (page === undefined) return;
  await shows(page, "no request found; records reach back to 20");
  const headings = "[...document.querySelectorAll('.columns > span')].map((span) => span.textContent).join()";
  const choose = (name: string): string =>
    `[...document.querySelectorAll('.menu label')].find((l) => l.textContent === '${name}').firstChild.click()`;
  await page.evaluate("document.querySelector('.menu summary').click()");
  assert.deepEqual(await violations(page), []);
  await page.evaluate(choose("attempts"));
  await page.evaluate(choose("method"));
  await until(page, `${headings} === 'time,host and path,status,took,route,endpoint,attempts,decided by'`);
  await page.send("Page.reload");
  await until(page, `${headings} === 'time,host and path,status,took,route,endpoint,attempts,decided by'`);
  await page.evaluate("localStorage.setItem('tracegate.columns', 'time nonsense')");
  await page.send("Page.reload");
  await until(page, `${headings} === 'time,host and path'`);
  assert.doesNotMatch(await textOf(page), /nonsense/);
});
