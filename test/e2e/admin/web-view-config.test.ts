import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freePort } from "../../helpers/free-ports.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { choose, levelOf } from "../../helpers/log-levels.ts";
import { fits, inChromium, shows, textOf, until, violations } from "../../helpers/web-view.ts";

const SECRET = "hunter2-secret";
/** Markup in a value. */
const EVIL = "<img src=x onerror=document.title='owned'>";

const configuration = (limit: number, secret = SECRET) => ({
  binds: [
    {
      port: 0,
      listeners: [
        {
          name: "web",
          routes: [
            {
              name: "evil",
              policies: { requestHeaderModifier: { set: { "x-evil": EVIL, authorization: secret } } },
              backends: [{ host: "127.0.0.1:9" }],
            },
            ...Array.from({ length: 120 }, (_, i) => ({
              name: `many-${i}`,
              matches: [{ path: { exact: `/many/${i}` } }],
              policies: { localRateLimit: [{ maxTokens: limit, fillInterval: "1s" }] },
              backends: [{ host: "127.0.0.1:9" }],
            })),
          ],
        },
      ],
    },
    {
      port: orders,
      listeners: [
        {
          name: "orders",
          routes: [],
          hostname: "orders.example",
          protocol: "HTTPS",
          tls: { acme: { email: "ops@example.com", directory: "https://127.0.0.1:9/directory" } },
          policies: {
            jwtAuth: { mode: "strict", issuer: "https://issuer.example", jwks: { url: "http://127.0.0.1:9/keys" } },
          },
        },
      ],
    },
  ],
});
let orders = 0;
let gateway: TestGateway;
before(async () => {
  orders = await freePort();
  gateway = await TestGateway.start(configuration(1));
});
after(() => gateway?.stop());

const open = inChromium();
const place = (hash: string): string => `${gateway.url("admin")}/ui/${hash}`;
const NOTES = "[...document.querySelectorAll('.notes')].map(({ textContent }) => textContent)";
const CHOSEN = "document.querySelector('.parts [aria-current]').textContent";

test("an origin leads to its part, whose values are text without secrets; other parts are found and opened", async (t) => {
  const page = await open(t, place("#/config?at=binds[0].listeners[0].routes[0].policies"));
  if (page === undefined) return;
  await shows(page, EVIL);
  assert.match(String(await page.evaluate(CHOSEN)), /route default\/evil.*gateway\.yaml:\d+/);
  assert.equal(await page.evaluate("document.title"), "tracegate");
  assert.doesNotMatch(await textOf(page), new RegExp(SECRET));
  await page.evaluate("[...document.querySelectorAll('nav a')].find((link) => link.textContent === 'next').click()");
  await shows(page, "101 to 1");
  await page.evaluate("document.querySelector('input').focus()");
  await page.send("Input.insertText", { text: "/MANY/77" });
  await shows(page, "1 of 12");
  await page.evaluate("document.querySelector('.parts a').click()");
  await until(page, "document.querySelector('.part h2')?.textContent === 'route default/many-77'");
  assert.deepEqual(page.messages, []);
});

test("a rejected configuration is shown with its problem, and a new one takes its place on the open page", async (t) => {
  const page = await open(t, place("#/config?at=binds[0].listeners[0].routes[1]"));
  if (page === undefined) return;
  await shows(page, "up to date");
  await until(page, `/^1 pending certificateorders.example: retry .*ECONNREFUSED/.test(${NOTES}[0])`);
  await until(page, `/^1 missing documenthttp:.*\\/keys: .*ECONNREFUSED.*are rejected$/.test(${NOTES}[1])`);
  assert.equal(await gateway.reconfigure(configuration(-5, `${SECRET}-2`)), "rejected");
  await shows(page, "the newest was rejected");
  await shows(page, "routes[1].policies.localRateLimit[0].maxTokens");
  await until(page, "document.querySelector('.difference .good') !== null");
  const difference = String(await page.evaluate("document.querySelector('.difference').textContent"));
  assert.match(difference, /^- +authorization: <redacted>\n\+ +authorization: <redacted>$/m);
  assert.match(difference, /^- .*maxTokens: 1$\n\+ .*maxTokens: -5$/m);
  assert.doesNotMatch(difference, new RegExp(SECRET));
  assert.deepEqual(await violations(page), []);
  assert.equal(await gateway.reconfigure(configuration(0)), "applied");
  // One more is about the missing document.
  await shows(page, "121 warnings");
  await page.evaluate("[...document.querySelectorAll('.notes summary')].at(-1).click()");
  await shows(page, "routes[1].policies.localRateLimit[0]: ");
  await shows(page, "and more, which tracegate check prints");
  await fits(page, 400, 1400);
  assert.deepEqual(await violations(page), []);
  assert.equal(await gateway.reconfigure(configuration(4321)), "applied");
  await shows(page, "4321");
  await shows(page, "up to date");
  assert.deepEqual(page.messages, []);
});

test("log levels are shown and changed with the token of the page, at once", async (t) => {
  const page = await open(t, place("#/config"));
  if (page === undefined) return;
  await until(page, "document.querySelector('.log-levels summary')?.textContent === 'Log info'");
  await page.evaluate("document.querySelector('.log-levels summary').click()");
  await choose(page, "proxy", "debug");
  await shows(page, "Log info,proxy=debug");
  assert.equal(await page.evaluate(levelOf("proxy::match")), "debug");
  assert.equal(await page.evaluate(levelOf("xds")), "info");
  await fits(page, 400, 1400);
  const filter = (): Promise<string> => fetch(`${gateway.url("admin")}/logging`).then((answer) => answer.text());
  assert.equal(await filter(), "current log level is info,proxy=debug\n");
  await page.evaluate("document.querySelector('.log-levels button').click()");
  await until(page, "document.querySelector('.log-levels summary').textContent === 'Log info'");
  assert.equal(await page.evaluate(levelOf("proxy::match")), "info");
  assert.equal(await filter(), "current log level is info\n");
  assert.deepEqual(page.messages, []);
});
