import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { testBackend } from "../../helpers/backend.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { fits, inChromium, shows, textOf, until } from "../../helpers/web-view.ts";

const EVIL = "<img src=x onerror=document.title='owned'>";

let failures = 0;
const slow = Promise.withResolvers<void>();
const backend = testBackend(async (request, response) => {
  if (request.url === "/slow") await slow.promise;
  const { "x-canary": canary } = request.headers;
  if (canary === undefined && request.url?.startsWith("/flaky") && failures++ % 2 === 0) {
    response.statusCode = 503;
    response.end();
    return;
  }
  response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
  response.end(gzipSync(JSON.stringify({ said: EVIL })));
});
let gateway: TestGateway;

before(async () => {
  const backends = [{ host: backend.host }];
  const policies = { retry: { attempts: 2, codes: [503] }, requestHeaderModifier: { set: { "x-shop": "cart" } } };
  const headers = [{ name: "x-canary", value: { exact: "yes" } }];
  const routes = [
    { name: "shop", matches: [{ path: { pathPrefix: "/" } }], policies, backends },
    { name: "canary", matches: [{ headers }], backends },
  ];
  gateway = await TestGateway.start({ binds: [{ port: 0, listeners: [{ name: "web", routes }] }] });
});
after(() => gateway.stop());

const open = inChromium();
const send = (path: string, id: string, more: object = {}): Promise<string> =>
  fetch(`http://127.0.0.1:${gateway.port()}${path}`, {
    headers: { "x-request-id": id, authorization: "Bearer planted-secret", ...more },
  }).then((response) => response.text());

test("from a request to a trace of the next like it, with all that happened", async (t) => {
  await send("/flaky?first=1", "first");
  const page = await open(t, `${gateway.url("admin")}/ui/#/r/first`);
  if (page === undefined) return;
  await shows(page, "What decided");
  const press = (name: string): Promise<unknown> =>
    page.evaluate(`[...document.querySelectorAll('button')].find((b) => b.textContent === '${name}').click()`);
  await page.evaluate(
    "{ const make = URL.createObjectURL; URL.createObjectURL = (blob) => (blob.text().then((text) => { window.saved = text; }), make.call(URL, blob)); }",
  );
  await press("Save as HAR");
  await until(page, "window.saved?.includes('as recorded, without fields')");
  await page.evaluate(
    "[...document.querySelectorAll('a')].find((a) => a.textContent === 'Trace the next like this').click()",
  );
  await shows(page, "Waiting for the next request");
  // Another path is not like it, and neither is another route.
  await send("/other", "other");
  await send("/flaky?canary", "canary", { "x-canary": "yes" });
  await send(`/flaky?x=${encodeURIComponent(EVIL)}`, "second");
  await shows(page, "→ 200 in ");
  await shows(page, "after 1 retry");
  const attempts =
    "[...document.querySelectorAll('.attempts tr')].map((row) => [...row.children].map((cell) => cell.textContent))";
  const table = (await page.evaluate(attempts)) as readonly (readonly string[])[];
  assert.deepEqual(
    table.find(([name]) => name === "status"),
    ["status", "503", "200"],
  );
  assert.match(table.find(([name]) => name === "then")?.[1] ?? "", /^retry 1 in .*because of status 503/);
  assert.match(await textOf(page), /policy requestHeaderModifier {2}set\.x-shop=cart/);

  const openEvent = (text: string): Promise<unknown> =>
    page.evaluate(
      `[...document.querySelectorAll('.events details')].find(({ textContent }) => textContent.includes(${JSON.stringify(text)})).open = true`,
    );
  await openEvent("request_header_modifier");
  await until(page, "document.querySelector('.events ins')?.textContent === '+ x-shop: cart\\n'");
  await openEvent("Body Snapshotresponse");
  // The body was compressed.
  await shows(page, `"said": "${EVIL}"`);
  assert.equal(await page.evaluate("document.title"), "tracegate");
  // Chromium lets no page of a test into the clipboard, so the command is shown.
  await press("Copy as curl");
  await shows(page, `SECRET_AUTHORIZATION:?`);
  await press("Save as trace.jsonl");
  await until(page, "window.saved?.endsWith('\\n')");
  const saved = String(await page.evaluate("window.saved"))
    .trimEnd()
    .split("\n");
  assert.deepEqual(
    [saved[0], saved.at(-1)].map((text) => JSON.parse(text ?? "").message.type),
    ["requestStarted", "requestFinished"],
  );
  await press("Save as HTML");
  await until(page, "window.saved?.startsWith('<!doctype html>')");
  const saidByTrace = String(await page.evaluate("window.saved"));
  assert.match(saidByTrace, /GET http:.*\/flaky.* <span>→ 200<\/span>/);
  assert.doesNotMatch(saidByTrace, /planted-secret|<img/);
  await press("Save as HAR");
  await until(page, "window.saved?.includes('\"entries\"')");
  const { entries } = JSON.parse(String(await page.evaluate("window.saved"))).log;
  assert.deepEqual(
    entries.map(({ response }: { response: { status: number } }) => response.status),
    [200, 503, 200],
    "the client's exchange, and each attempt",
  );
  assert.doesNotMatch(await textOf(page), /planted-secret|\/other/);
  await fits(page, 400, 2560);

  await page.evaluate(
    "[...document.querySelectorAll('a')].find((a) => a.textContent === 'What is recorded of it').click()",
  );
  await shows(page, "200 in ");
  await shows(page, "2 attempts");
  await shows(page, "Record");
  assert.match(await textOf(page), /until the backend's head/, "what the record has");
  await openEvent("request_header_modifier");
  await until(page, "document.querySelector('.events ins')?.textContent === '+ x-shop: cart\\n'");
  await fits(page, 400, 2560);
  assert.deepEqual(page.messages, []);
});

test("a trace shows what has happened before the request ends, and can be stopped", async (t) => {
  const page = await open(
    t,
    `${gateway.url("admin")}/ui/#/trace?expression=${encodeURIComponent('request.path == "/slow"')}`,
  );
  if (page === undefined) return;
  await shows(page, "Waiting for the next request");
  const answer = send("/slow", "slow");
  await shows(page, "The request is on its way");
  await until(
    page,
    "[...document.querySelectorAll('.events summary')].some((each) => each.textContent.includes('Backend Start'))",
  );
  await page.evaluate("[...document.querySelectorAll('button')].find((b) => b.textContent === 'Stop').click()");
  await shows(page, "Stopped after");
  slow.resolve();
  await answer;
});

test("an expression that does not compile is explained, and nothing waits", async (t) => {
  const page = await open(t, `${gateway.url("admin")}/ui/#/trace?expression=${encodeURIComponent("request.path ==")}`);
  if (page === undefined) return;
  await until(page, "document.querySelector('[role=alert]')?.textContent.includes('line 1, column 16')");
  await shows(page, "Stopped before a request came");
});
