import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { AdminClient } from "../../../src/admin/client/client.ts";
import type { Page } from "../../helpers/chromium.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { until as recorded } from "../../helpers/until.ts";
import { fits, inChromium, look, press, shows, until, violations } from "../../helpers/web-view.ts";

let gateway: TestGateway;
before(async () => {
  gateway = await TestGateway.start({
    config: { customFunctions: "failed(code) { code >= 500 }" },
    binds: [{ port: 0, listeners: [{ name: "web", routes: [{ name: "shop", backends: [{ host: "127.0.0.1:9" }] }] }] }],
  });
});
after(() => gateway.stop());

const open = inChromium();

const FIELD = "document.querySelector('[role=combobox]')";
const OPTIONS = "[...document.querySelectorAll('[role=option]')].map((each) => each.firstChild.textContent).join()";

async function type(page: Page, text: string): Promise<void> {
  await page.send("Input.insertText", { text });
}

/** The text of the field, with `|` for the caret. */
function written(page: Page): Promise<unknown> {
  return page.evaluate(
    `${FIELD}.value.slice(0, ${FIELD}.selectionStart) + '|' + ${FIELD}.value.slice(${FIELD}.selectionEnd)`,
  );
}

test("the filter of requests offers the names of records, for the keyboard alone", async (t) => {
  const page = await open(t, `${gateway.url("admin")}/ui/#/requests`);
  if (page === undefined) return;
  await shows(page, "no request found");
  await press(page, "/");
  await type(page, "fai");
  await until(page, `${OPTIONS} === 'failed(…),fail(…)'`);
  await press(page, "ArrowDown");
  assert.equal(
    await page.evaluate(
      `document.getElementById(${FIELD}.getAttribute('aria-activedescendant')).firstChild.textContent`,
    ),
    "failed(…)",
  );
  await fits(page, 400);
  await press(page, "Enter");
  assert.equal(await written(page), "failed(|)");
  await type(page, "re");
  await until(page, `${OPTIONS} === 'request,response,reason'`);
  await press(page, "ArrowUp");
  await press(page, "ArrowUp");
  await press(page, "Tab");
  await type(page, ".co");
  await until(page, `${OPTIONS} === 'code'`);
  await press(page, "Tab");
  assert.equal(await written(page), "failed(response.code|)");
  assert.equal(await page.evaluate("location.hash"), "#/requests", "nothing is asked before Enter");
  await type(page, " + duratio");
  await until(page, `${OPTIONS} === 'duration,duration(…)'`);
  await press(page, "Escape");
  assert.equal(await page.evaluate(`${FIELD}.getAttribute('aria-expanded')`), "false");
  assert.equal(await page.evaluate(`document.activeElement === ${FIELD}`), true, "Escape closes the list first");
  await press(page, "Enter");
  await until(page, `${FIELD}.getAttribute('aria-invalid') === 'true'`);
  assert.match(
    String(await page.evaluate(`document.getElementById(${FIELD}.getAttribute('aria-describedby')).textContent`)),
    /unknown variable duratio; did you mean duration\?/,
  );
  await page.evaluate("document.querySelector('#requests-problem a').click()");
  await until(page, `document.querySelector('h1')?.textContent === 'Expression'`);
  assert.equal(await page.evaluate(`${FIELD}.value`), "failed(response.code + duratio)");
  assert.equal(await page.evaluate("document.querySelector('select').value"), "record");
});

test("the bench shows the value of every part while one types, and keeps it in the address", async (t) => {
  const url = encodeURIComponent("http://shop.example/cart?token=s3cr3t");
  const page = await open(t, `${gateway.url("admin")}/ui/#/expression?url=${url}&header=x-role%3A%20admin`);
  if (page === undefined) return;
  await shows(page, "(string): bool");
  const rows =
    "[...document.querySelectorAll('tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent).join(' | '))";
  await type(page, 'request.path.startsWith("/c") && request.headers["x-role"] == "dev"');
  await until(page, `${rows}.length === 5`);
  assert.deepEqual(await page.evaluate(rows), [
    'request.path.startsWith("/c") && request.headers["x-role"] == "dev" | false | bool',
    'request.path.startsWith("/c") | true | bool',
    'request.path | "/cart" | string',
    'request.headers["x-role"] == "dev" | false | bool',
    'request.headers["x-role"] | "admin" | string',
  ]);
  const described = `document.getElementById(${FIELD}.getAttribute('aria-describedby'))?.textContent.includes('did you mean')`;
  assert.equal(await page.evaluate(`${FIELD}.ariaInvalid`), null);
  assert.match(String(await page.evaluate("location.hash")), /expression=request\.path\.starts.*url=.*%3Credacted%3E/);
  await fits(page, 400, 1600);
  await type(page, " && jwt.sub == 'a'");
  await page.evaluate("document.querySelector('[aria-label=\"Value of field 1\"]').select()");
  await type(page, "dev");
  await shows(page, "not known: the variable jwt: assume jwt={");
  // A mistake has its place, and what is offered instead.
  await page.evaluate(`${FIELD}.focus()`);
  await type(page, " && request.methd");
  await until(page, "document.querySelector('pre')?.textContent.includes('did you mean method?')");
  await until(page, `${FIELD}.ariaInvalid === 'true' && ${described}`);
  assert.match(String(await page.evaluate("document.querySelector('pre').textContent")), /\^ line 1, column 9\d/);
  await look(page, "dark", 400);
  assert.deepEqual(await violations(page), []);
  // A loop has the values of its turns.
  await page.evaluate(`${FIELD}.select()`);
  await type(page, "[3, 4].exists(n, n > 3)");
  await until(page, `${rows}.length === 5`);
  assert.deepEqual(await page.evaluate(rows), [
    "[3, 4].exists(n, n > 3) | true | bool",
    "n | 3 | int",
    "n > 3 | false | bool",
    "n | 4 | int",
    "n > 3 | true | bool",
  ]);
  await page.evaluate("document.querySelector('[type=search]').focus()");
  await type(page, "bitshift");
  await until(page, "document.querySelectorAll('.names dt').length === 2");
});

test("the bench evaluates a recorded request, and a link to it does the same", async (t) => {
  assert.equal((await fetch(`http://127.0.0.1:${gateway.port()}/cart`)).status, 503);
  const admin = new AdminClient(gateway.url("admin"));
  const { worker, number } = await recorded(async () => (await admin.requests({ limit: 1 })).records[0]);
  const words = new URLSearchParams({
    expression: "failed(response.code)",
    scope: "record",
    id: `${worker}-${number}`,
  });
  const page = await open(t, `${gateway.url("admin")}/ui/#/expression?${words}`);
  if (page === undefined) return;
  await until(page, "document.querySelector('tbody')?.textContent.includes('response.code503')");
  await page.evaluate("location.hash = '#/expression?expression=route&scope=record&id=0-99'");
  await shows(page, "no record of the request");
});
