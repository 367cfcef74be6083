import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { KINDS } from "../../../scripts/lib/policy-docs.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { inChromium, shows, until } from "../../helpers/web-view.ts";

let gateway: TestGateway;
before(async () => {
  gateway = await TestGateway.start({ binds: [{ port: 0, listeners: [{ name: "web", routes: [] }] }] });
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

test("a link into a page shows its section, and a page that is not there is named", async (t) => {
  const page = await open(t, place("#/docs/expressions?at=variables"));
  if (page === undefined) return;
  await until(page, "Math.abs(document.querySelector('#variables')?.getBoundingClientRect().top) < 200");
  await page.evaluate("location.hash = '#/policies/none'");
  await shows(page, "There is no page policies/none");
});
