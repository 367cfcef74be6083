import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { exchangeRaw } from "../../helpers/admin/raw-request.ts";
import { testBackend } from "../../helpers/backend.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { fits, inChromium, shows, until } from "../../helpers/web-view.ts";

const backend = testBackend();
let gateway: TestGateway;
let host: string;

/** A configuration that refuses what is below a prefix. */
function configured(prefix: string): object {
  const deny = { authorization: { rules: [{ deny: "true" }] } };
  const routes = [
    { name: "closed", matches: [{ path: { pathPrefix: prefix } }], policies: deny, backends: [{ host }] },
    { name: "shop", matches: [{ path: { pathPrefix: "/" } }], backends: [{ host }] },
  ];
  return { binds: [{ port: 0, listeners: [{ name: "web", routes }] }] };
}

/** The host has no port, as behind a load balancer that listens at the usual one. */
function send(path: string): Promise<unknown> {
  const fields = "host: shop.example\r\nx-canary: yes\r\ncookie: a=s3cret\r\nconnection: close";
  return exchangeRaw(`127.0.0.1:${gateway.port()}`, `GET ${path} HTTP/1.1\r\n${fields}\r\n\r\n`);
}

before(async () => {
  host = backend.host;
  gateway = await TestGateway.start(configured("/admin"));
  for (const path of ["/cart", "/cart?token=s3cret", "/admin"]) await send(path);
});
after(() => gateway.stop());

const open = inChromium();

test("a dropped configuration: what it would change, with examples of before and after", async (t) => {
  const page = await open(t, `${gateway.url("admin")}/ui/#/impact`);
  if (page === undefined) return;
  await shows(page, "Nothing is applied");
  const drop = (name: string, content: string): Promise<unknown> =>
    page.evaluate(`(() => {
      const data = new DataTransfer();
      data.items.add(new File([${JSON.stringify(content)}], ${JSON.stringify(name)}));
      document.querySelector('form').dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
    })()`);
  const compare = "document.querySelector('button[type=submit]').click()";

  for (const [name, content, says] of [
    ["empty.yaml", "", "empty.yaml is empty."],
    ["icon.png", "\u0089PNG\0\0", "icon.png is no text"],
  ] as const) {
    await drop(name, content);
    await shows(page, says);
  }
  await page.evaluate(compare);
  await shows(page, "There is no text yet");

  await drop("wrong.yaml", "binds:\n- port: 8080\n  listners: []\n");
  await until(page, "document.querySelector('textarea').value.includes('listners')");
  await page.evaluate(compare);
  await shows(page, "wrong.yaml:3");
  await shows(page, "listeners");

  await drop("new.yaml", JSON.stringify(configured("/cart"), undefined, 1));
  await until(page, "document.querySelector('textarea').value.includes('/cart')");
  await page.evaluate(compare);
  await shows(page, "Refused: 2 requests");
  await shows(page, "are refused with 403 by authorization at new.yaml:");
  await shows(page, "No longer refused: 1 request");
  assert.doesNotMatch(String(await page.evaluate("document.body.innerHTML")), /s3cret/);

  await page.evaluate("document.querySelector('.changes summary').click()");
  await until(page, "document.querySelectorAll('.outcomes article').length === 2");
  const marked = await page.evaluate("[...document.querySelectorAll('.differs')].map((each) => each.textContent)");
  assert.match(String(marked), /403.*default\/closed/);
  assert.doesNotMatch(String(marked), /listener web/, "another place is no difference");
  const explained = String(await page.evaluate("document.querySelector('.outcomes').textContent"));
  assert.match(explained, /x-canary: yes/, "the sample's own fields are rehearsed");
  await fits(page, 400);

  const places = (side: string) =>
    page.evaluate(`document.querySelectorAll('section[aria-label=${JSON.stringify(side)}] .tree a').length > 0`);
  assert.equal(await places("Now"), true);
  assert.equal(await places("With the new configuration"), false, "only what is in effect has a page");

  // What if the sample were another: the form has its facts. Back again, the text and the answer are still there.
  await page.evaluate("document.querySelector('.changes details a').click()");
  await until(
    page,
    "[...document.querySelectorAll('.header-rows input')].map(({ value }) => value).join(': ').includes('x-canary: yes')",
  );
  await shows(page, "default/shop");
  await page.evaluate("history.back()");
  await shows(page, "Refused: 2 requests");
  assert.match(String(await page.evaluate("document.querySelector('textarea').value")), /cart/);
  // The same text is asked again, about what came since.
  await send("/cart?again");
  await page.evaluate(compare);
  await shows(page, "Refused: 3 requests");
  assert.deepEqual(
    page.messages.filter((text) => !text.includes("400")),
    [],
  );
  assert.equal((await fetch(`http://127.0.0.1:${gateway.port()}/cart`)).status, 200, "nothing is applied");
});
