import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { KINDS } from "../../../scripts/lib/policy-docs.ts";
import { appRoot } from "../../../src/base/app-root.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { inChromium, press, shows, until, violations } from "../../helpers/web-view.ts";

let gateway: TestGateway;
before(async () => {
  const routes = Array.from({ length: 21 }, (_, i) => ({
    name: `denied-${i}`,
    matches: [{ path: { exact: `/${i}` } }],
    policies: { directResponse: { status: 403 } },
  }));
  gateway = await TestGateway.start({ binds: [{ port: 0, listeners: [{ name: "web", routes }] }] });
});
after(() => gateway?.stop());

const open = inChromium();
const place = (hash: string): string => `${gateway.url("admin")}/ui/${hash}`;

test("every kind of policy has its page: fields, an example, links that lead on", async (t) => {
  const page = await open(t, place("#/policies"));
  if (page === undefined) return;
  await shows(page, "Policies run in this order");
  const kinds = await page.evaluate(
    "[...document.querySelectorAll('tbody a')].map((link) => link.hash.replace('#/policies/', ''))",
  );
  assert.deepEqual(kinds, KINDS);
  for (const kind of KINDS) {
    await page.evaluate(`location.hash = '#/policies/${kind}'`);
    await until(page, `document.querySelector('h1')?.textContent === '${kind}'`);
    await shows(page, `Where it runs`);
    assert.match(String(await page.evaluate("document.querySelector('pre').textContent")), /binds:/);
  }
  assert.deepEqual(page.messages, []);
});

test("the page of a policy leads to the parts of the configuration where it is in use", async (t) => {
  const page = await open(t, place("#/policies/cors"));
  if (page === undefined) return;
  await shows(page, "Not in use here.");
  await page.evaluate("location.hash = '#/policies/directResponse'");
  await shows(page, "In use at 21 places");
  const follow = (text: string): Promise<unknown> =>
    page.evaluate(`[...document.querySelectorAll('a')].find((a) => a.textContent.includes('${text}')).click()`);
  await follow("all 21");
  await shows(page, "21 of 24 parts");
  await follow("default/denied-7");
  await until(page, "document.querySelector('.part h2')?.textContent.includes('denied-7')");
  await page.evaluate("document.querySelector('search a:last-of-type').click()");
  await until(page, "!document.querySelector('[aria-label=\\'Pages of parts\\']').textContent.includes(' of ')");
  assert.deepEqual(page.messages, []);
});

test("a link into a page shows its section, and a page that is not there is named", async (t) => {
  const page = await open(t, place("#/docs/expressions?at=variables"));
  if (page === undefined) return;
  await until(page, "Math.abs(document.querySelector('#variables')?.getBoundingClientRect().top) < 200");
  await page.evaluate("location.hash = '#/policies/none'");
  await shows(page, "There is no page policies/none");
});

test("? shows the keys of the page and of all pages, and leads to the documentation; / goes to the search", async (t) => {
  const page = await open(t, place("#/requests"));
  if (page === undefined) return;
  await until(page, "document.querySelector('main input') !== null");
  await press(page, "?");
  await until(page, "document.querySelector('dialog[open] li') !== null");
  const help = "document.querySelector('dialog').textContent";
  assert.match(String(await page.evaluate(help)), /Keys of the page Requests.*follows the newest.*Keys of all pages/s);
  assert.deepEqual(await violations(page), []);
  await press(page, "/");
  assert.equal(await page.evaluate("document.activeElement.closest('dialog') !== null"), true);
  await page.evaluate(
    "[...document.querySelectorAll('dialog a')].find((link) => link.hash === '#/docs/recorder').click()",
  );
  await until(page, "document.querySelector('h1')?.textContent === 'Recorded requests'");
  assert.equal(await page.evaluate("document.querySelector('dialog').open"), false);
  await page.evaluate("location.hash = '#/routes'");
  await until(page, "document.querySelector('main input[type=search]') !== null");
  await press(page, "/");
  assert.equal(await page.evaluate("document.activeElement.type"), "search");
  await press(page, "?");
  assert.equal(await page.evaluate("document.querySelector('dialog').open"), false);
  assert.deepEqual(page.messages, []);
});

test("docs/ui.md has the keys that the help shows", async (t) => {
  const page = await open(t, place("#/requests"));
  if (page === undefined) return;
  await until(page, "document.querySelector('main input') !== null");
  await press(page, "?");
  const shown = await page.evaluate(
    "[...document.querySelectorAll('dialog dl')].flatMap((list) => [...list.querySelectorAll('dd')].map((does) => does.textContent))",
  );
  const documented = readFileSync(`${appRoot}docs/ui.md`, "utf8");
  for (const does of shown as string[]) assert.ok(documented.includes(`| ${does} |`), does);
});
