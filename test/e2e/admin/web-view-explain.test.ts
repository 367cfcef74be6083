import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { AdminClient } from "../../../src/admin/client/client.ts";
import type { Page } from "../../helpers/chromium.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { until as recorded } from "../../helpers/until.ts";
import { fits, inChromium, press, shows, textOf, until, violations } from "../../helpers/web-view.ts";

let gateway: TestGateway;

/** The gateway of these tests, with the route at a path. */
function configured(pathPrefix: string): object {
  const backends = [
    { host: "127.0.0.1:9", weight: 9 },
    { host: "127.0.0.1:99", weight: 1 },
  ];
  const policies = {
    extAuthz: { host: "127.0.0.1:9", protocol: { http: {} } },
    authorization: { rules: [{ allow: 'request.headers["x-role"] == "admin"' }] },
  };
  const routes = [{ name: "shop", matches: [{ path: { pathPrefix } }], policies, backends }];
  return { binds: [{ port: 0, listeners: [{ name: "web", routes }] }] };
}

before(async () => {
  gateway = await TestGateway.start(configured("/shop"));
});
after(() => gateway.stop());

const openUrl = inChromium();

function open(t: TestContext, query: string): Promise<Page | undefined> {
  return openUrl(t, `${gateway.url("admin")}/ui/#/explain${query}`);
}

/** The texts of elements. */
function texts(page: Page, selector: string): Promise<unknown> {
  return page.evaluate(`[...document.querySelectorAll('${selector}')].map((each) => each.textContent)`);
}

async function click(page: Page, legend: string, button: string): Promise<void> {
  const found = `[...document.querySelectorAll('fieldset')].find((each) => each.querySelector('legend').textContent === ${JSON.stringify(legend)})`;
  await page.evaluate(
    `[...${found}.querySelectorAll('button')].find((each) => each.textContent === '${button}').click()`,
  );
}

test("outcomes side by side, and switches for what they depend on, which the address keeps", async (t) => {
  const url = `http://shop.example:${gateway.port()}/shop`;
  const role = encodeURIComponent("x-role: <redacted>");
  const page = await open(t, `?url=${encodeURIComponent(url)}&header=${role}`);
  if (page === undefined) return;
  await shows(page, "external authorization failed");
  assert.deepEqual(await texts(page, "article h2"), ["200 · 90% of requests", "200 · 10% of requests", "403", "403"]);
  const marked = String(await texts(page, "article:nth-of-type(2) .differs"));
  assert.match(marked, /127\.0\.0\.1:99/);
  assert.doesNotMatch(marked, /listener web|x-request-id|extAuthz/, "as in the outcome before");
  await fits(page, 400);
  await click(page, "extAuthz", "deny");
  await until(page, "document.querySelectorAll('article').length === 1");
  assert.match(String(await page.evaluate("location.hash")), /assume=extAuthz%3Ddeny/);
  // The other values are still there to be chosen.
  await click(page, "extAuthz", "allow");
  await until(page, "document.querySelectorAll('article').length === 3");
  await click(page, 'request.headers["x-role"] == "admin"', "false");
  await until(page, "document.querySelectorAll('article').length === 1");
  await shows(page, "no allow rule is true");
  await shows(page, "2 outcomes in which a condition has another result");
  // Another request depends on other things; the same address asks the same again.
  const asked = String(await page.evaluate("location.hash"));
  await page.evaluate(`location.hash = '#/explain?url=${encodeURIComponent(url.replace(/shop$/, "other"))}'`);
  await shows(page, "1 outcome with configuration 1");
  assert.deepEqual(await texts(page, ".switches legend"), []);
  await page.evaluate(`location.hash = ${JSON.stringify(asked)}`);
  await shows(page, "no allow rule is true");
  await until(page, "document.querySelectorAll('article').length === 1");
  await page.evaluate("history.back()");
  await shows(page, "1 outcome with configuration 1");
  await page.evaluate("history.back()");
  await shows(page, "no allow rule is true");
  // Back to what was asked before.
  await page.evaluate("history.go(-2)");
  await until(page, "[...document.querySelectorAll('article h2')].map((each) => each.textContent).join() === '403'");
  await shows(page, "external authorization failed");
  assert.deepEqual(page.messages, []);
});

test("the form asks about what was typed, and keeps secrets out of the address", async (t) => {
  const page = await open(t, "");
  if (page === undefined) return;
  await shows(page, "No backend or service gets anything");
  const type = async (field: string, text: string): Promise<void> => {
    await page.evaluate(`document.querySelector('[name=${field}]').focus()`);
    await page.send("Input.insertText", { text });
  };
  const insert = (text: string) => page.send("Input.insertText", { text });
  const focused = () => page.evaluate("document.activeElement.ariaLabel ?? document.activeElement.textContent");
  const rows = () =>
    page.evaluate("[...document.querySelectorAll('.header-rows input')].map(({ value }) => value).join('|')");
  // Rows by the keyboard alone: one is added, filled and removed.
  await page.evaluate("document.querySelector('.header-rows .name').focus()");
  for (const text of ["x-role", "admin"]) {
    await insert(text);
    await press(page, "Tab");
  }
  await press(page, "Tab");
  await press(page, "Enter");
  assert.equal(await focused(), "Name of field 2");
  await insert("x-wrong");
  for (const key of ["Tab", "Tab", "Enter"]) await press(page, key);
  assert.equal(
    await focused(),
    "Add a field",
    "the last row is gone, and the keyboard is where the next one comes from",
  );
  await press(page, "Enter");
  assert.equal(await rows(), "x-role|admin||");
  // Lines of fields that are pasted become rows.
  await page.evaluate(`{
    const clipboardData = new DataTransfer();
    clipboardData.setData("text", "authorization: Bearer s3cret\\nx-a:1");
    document.activeElement.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  }`);
  await until(page, "document.querySelectorAll('.header-rows .name').length === 3");
  assert.equal(await rows(), "x-role|admin|authorization|Bearer s3cret|x-a|1");
  await page.evaluate("document.querySelectorAll('.header-rows button')[0].focus()");
  await press(page, "Enter");
  assert.equal(await rows(), "authorization|Bearer s3cret|x-a|1");
  assert.equal(await focused(), "Remove field 1", "the keyboard stays where the next row is now");
  await page.evaluate("document.querySelectorAll('.header-rows .name')[1].select()");
  await insert("x-role");
  await press(page, "Tab");
  await insert("admin");
  // A listener has the host and port that lead to it.
  await until(page, "document.querySelector('[name=listener]')?.options.length === 2");
  await type("url", "https://shop.example/shop");
  await page.evaluate(`{
    const select = document.querySelector("[name=listener]");
    select.selectedIndex = 1;
    select.dispatchEvent(new Event("change", { bubbles: true }));
  }`);
  assert.equal(
    await page.evaluate("document.querySelector('[name=url]').value"),
    `http://shop.example:${gateway.port()}/shop`,
  );
  await page.evaluate("document.querySelector('[name=url]').focus()");
  await press(page, "Enter");
  await shows(page, "route shop");
  await shows(page, "The address of this page leaves out secrets: authorization");
  assert.doesNotMatch(String(await page.evaluate("location.href")), /s3cret/);
  const fieldValue = (name: string) => page.evaluate(`document.querySelector('[name=${name}]').value`);
  assert.match(String(await rows()), /s3cret/);
  assert.notEqual(await fieldValue("listener"), "", "the URL is still the one for it");

  // A switch leaves what is being typed alone.
  await type("method", "PUT");
  await click(page, "extAuthz", "deny");
  await until(page, "document.querySelectorAll('article').length === 1");
  assert.equal(await fieldValue("method"), "PUT");
  assert.match(String(await rows()), /s3cret/);

  // Enter asks again, though the question is the same, and the keyboard stays where it was.
  await page.evaluate("document.querySelector('[name=method]').value = ''");
  assert.equal(await gateway.reconfigure(configured("/elsewhere")), "applied");
  await page.evaluate("document.querySelector('[name=url]').focus()");
  await press(page, "Enter");
  await until(page, "document.querySelector('[role=alert]')?.textContent.includes('extAuthz')");
  assert.equal(await page.evaluate("document.activeElement.name"), "url");
  assert.equal(await gateway.reconfigure(configured("/shop")), "applied");
  await press(page, "Enter");
  await shows(page, "1 outcome with configuration 3");
});

test("a mistake is said at the field or assumption that has it, with what to assume instead", async (t) => {
  const page = await open(t, "?url=http://shop.example/&source=nobody");
  if (page === undefined) return;
  const alert = (inside: string) => `document.querySelector('${inside} [role=alert]')?.textContent ?? ''`;
  await until(page, `(${alert(".labeled")}).includes('nobody is not an IP address')`);
  assert.equal(await page.evaluate("document.querySelector('[aria-invalid]').name"), "source");
  assert.equal(await page.evaluate("document.querySelectorAll('[role=alert]').length"), 1);
  assert.deepEqual(await violations(page), []);
  // Of the fields, the one that is wrong.
  await page.evaluate("location.hash = '#/explain?url=http://a/&header=x-a:1&header=:2'");
  await until(page, `(${alert(".header-rows")}).includes('is not a header field')`);
  assert.equal(await page.evaluate("document.querySelector('[aria-invalid]').ariaLabel"), "Name of field 2");
  assert.deepEqual(await violations(page), []);
  // However soon the next question follows.
  for (let i = 0; i < 10; i++) {
    await page.evaluate("location.hash = '#/explain?url=http://shop.example/&source=nobody'");
    await until(page, `(${alert(".labeled")}).includes('nobody is not an IP address')`);
    await page.evaluate("location.hash = '#/explain?url=http://a/&header=:2'");
    await until(page, `(${alert(".header-rows")}).includes('is not a header field')`);
  }
  const ask = (path: string, assume: string) => {
    const url = encodeURIComponent(`http://shop.example:${gateway.port()}${path}`);
    return page.evaluate(`location.hash = '#/explain?url=${url}&assume=${encodeURIComponent(assume)}'`);
  };
  await ask("/other", "extAuthz=deny");
  await until(page, `(${alert("fieldset")}).includes('extAuthz')`);
  await click(page, "extAuthz", "any");
  await shows(page, "404");
  assert.doesNotMatch(await textOf(page), /nothing depends on/);
  await ask("/shop", "extAuthz=perhaps");
  await until(page, `(${alert("fieldset")}).includes('perhaps')`);
  assert.deepEqual(await violations(page), []);
  await click(page, "extAuthz", "extAuthz=deny");
  await shows(page, "external authorization failed");
  assert.match(String(await page.evaluate("location.hash")), /assume=extAuthz%3Ddeny$/);
});

test("a recorded request fills the form: what if it had been otherwise", async (t) => {
  await fetch(`http://127.0.0.1:${gateway.port()}/shop`, { method: "DELETE" });
  const admin = new AdminClient(gateway.url("admin"));
  const [record] = await recorded(async () => {
    const { records } = await admin.requests({ limit: 1, where: 'request.method == "DELETE"' });
    return records.length > 0 && records;
  });
  const page = await openUrl(t, `${gateway.url("admin")}/ui/#/r/${record?.worker}-${record?.number}`);
  if (page === undefined) return;
  await shows(page, "What if…");
  await page.evaluate("[...document.querySelectorAll('a')].find((link) => link.textContent === 'What if…').click()");
  await shows(page, "with configuration");
  const value = (name: string) => page.evaluate(`document.querySelector('[name=${name}]').value`);
  assert.deepEqual(
    [await value("method"), await value("url"), await value("version")],
    ["DELETE", `http://127.0.0.1:${gateway.port()}/shop`, "1.1"],
  );
  assert.doesNotMatch(String(await page.evaluate("location.hash")), /id=/, "the address has the facts from here on");
  await page.evaluate("location.hash = '#/explain?id=0-99999'");
  await shows(page, "no record of the request");
});
