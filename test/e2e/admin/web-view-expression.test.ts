import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "../../helpers/chromium.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { inChromium, look, press, shows, until, violations } from "../../helpers/web-view.ts";

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
  for (const scheme of ["light", "dark"] as const) {
    await look(page, scheme, 400);
    assert.deepEqual(await violations(page), []);
    assert.equal(await page.evaluate("document.documentElement.scrollWidth > innerWidth"), false);
  }
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
});
