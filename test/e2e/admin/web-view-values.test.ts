/** Whatever clients and links say, pages of the web view show it as text. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { exchangeRaw } from "../../helpers/admin/raw-request.ts";
import { testBackend } from "../../helpers/backend.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { inChromium, shows } from "../../helpers/web-view.ts";

const MARKUP = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>";
/** Arabic, Chinese and Cyrillic. */
const NAMES = ["سلة 12", "购物车", "Корзина"] as const;
/** Characters that reverse what follows or are not seen, and as pages show them. */
const HIDDEN = "\u202e\u200b";
const SHOWN = "\\u202e\\u200b";
const LONG = "<b>".repeat(350_000);

const backend = testBackend(
  (request, response) => {
    response.statusCode = request.url === "/long" ? 503 : 200;
    response.end("hello");
  },
  { maxHeaderSize: 2_000_000 },
);
let gateway: TestGateway;

before(async () => {
  const backends = [{ host: backend.host }];
  const header = (value: string) => ({ name: "x-name", value: { exact: value } });
  const routes = [
    ...NAMES.map((name, i) => ({ name: `name-${i}`, matches: [{ headers: [header(name)] }], backends })),
    { name: "hidden", matches: [{ headers: [header(`a${HIDDEN}b`)] }], backends },
    {
      name: "evil",
      matches: [{ path: { pathPrefix: "/evil" }, headers: [header(MARKUP)] }],
      policies: { authorization: { rules: [{ deny: `request.headers["x-evil"] == ${JSON.stringify(MARKUP)}` }] } },
      backends,
    },
    { name: "all", matches: [{ path: { pathPrefix: "/" } }], backends },
  ];
  gateway = await TestGateway.start({
    frontendPolicies: { http: { maxHeadSize: 2_000_000 } },
    binds: [{ port: 0, listeners: [{ name: "web", routes }] }],
  });
  // What the parser of requests lets through, and some that it refuses.
  const requests = [
    "GET /&lt;script&gt;document.title='owned'%3Cscript%3E%E2%80%AE HTTP/1.1\r\nhost: a.example",
    "!#$%&'*+-.^_`|~ /method HTTP/1.1\r\nhost: a.example",
    `GET /long HTTP/1.1\r\nhost: a.example\r\nx-long: ${LONG}`,
    `GET /${"p".repeat(1_000_000)} HTTP/1.1\r\nhost: a.example`,
    `GET /evil HTTP/1.1\r\nhost: a.example\r\nx-name: ${MARKUP}\r\nx-evil: ${MARKUP}\r\nx-request-id: evil`,
    `GET /agent HTTP/1.1\r\nhost: a.example\r\nx-request-id: ${MARKUP}\r\ntraceparent: 00-${MARKUP}-01`,
    "GET /<script> HTTP/1.1\r\nhost: <script>",
    "GET /\x1b[31m HTTP/1.1\r\nhost: a.example\r\nx-a: \x01",
  ];
  for (const name of NAMES)
    requests.push(`GET /${encodeURIComponent(name)} HTTP/1.1\r\nhost: a.example\r\nx-name: ${name}`);
  for (const text of requests) await exchangeRaw(`127.0.0.1:${gateway.port()}`, `${text}\r\nconnection: close\r\n\r\n`);
});
after(() => gateway?.stop());

const open = inChromium();
const evil = encodeURIComponent(MARKUP);
const header = (value: string): string => encodeURIComponent(`x-name: ${value}`);

/** Places, and a text that they show. */
const PLACES: readonly (readonly [hash: string, text: string])[] = [
  ["#/", "Failed or rejected"],
  ["#/requests", "/&lt;script&gt;document.title='owned'%3Cscript%3E%E2%80%AE"],
  ["#/requests", "!#$%&'*+-.^_`|~"],
  ["#/requests", "/long"],
  ["#/requests", "default/name-0"],
  [`#/requests?where=${evil}`, "where: "],
  [`#/requests?where=${encodeURIComponent(`request.path == ${JSON.stringify(MARKUP)}`)}`, "no request found"],
  ["#/r/evil", MARKUP],
  [`#/r/${evil}`, `no record of the request "${MARKUP}"`],
  [`#/routes`, MARKUP],
  [`#/routes?search=${evil}`, "0 of 6 routes"],
  [`#/backends?find=${evil}`, "backend"],
  [`#/backends/${evil}`, MARKUP],
  [`#/explain?url=http://a.example/evil&header=${header(MARKUP)}`, MARKUP],
  [`#/policies/${evil}`, MARKUP],
  [`#/docs/${evil}`, MARKUP],
  [`#/${evil}`, "There is no page /"],
];

test("markup, controls and a field of 1 MB in what clients and links say is shown, never run", async (t) => {
  const page = await open(t, `${gateway.url("admin")}/ui/#/`);
  if (page === undefined) return;
  for (const [hash, text] of PLACES) {
    await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
    await shows(page, text);
    assert.equal(await page.evaluate("document.title"), "tracegate", hash);
    assert.equal(await page.evaluate("document.querySelectorAll('main script, main img, main b').length"), 0, hash);
    assert.equal(await page.evaluate("document.documentElement.scrollWidth > innerWidth"), false, hash);
  }
  // Refused questions are expected here.
  assert.deepEqual(
    page.messages.filter((message) => !message.includes('"source":"network"')),
    [],
  );
  assert.deepEqual([...new Set(page.requests.map((url) => new URL(url).origin))], [gateway.url("admin")]);
});

test("a trace shows a field of 1 MB, markup and controls that a client sent", async (t) => {
  const page = await open(
    t,
    `${gateway.url("admin")}/ui/#/trace?expression=${encodeURIComponent('request.path == "/traced"')}`,
  );
  if (page === undefined) return;
  await shows(page, "Waiting for the next request");
  const fields = [`x-long: ${LONG}end-of-long`, `x-markup: ${MARKUP}`, `x-hidden: a${HIDDEN}b`, "content-length: 9"];
  const answer = exchangeRaw(
    `127.0.0.1:${gateway.port()}`,
    `POST /traced HTTP/1.1\r\nhost: a.example\r\nconnection: close\r\n${fields.join("\r\n")}\r\n\r\n<b>\u0001</b>\u0002`,
  );
  assert.match(await answer, /^HTTP\/1\.1 200 /);
  await shows(page, MARKUP);
  await page.evaluate("for (const events of document.querySelectorAll('main details')) events.open = true");
  await shows(page, "<b><b><b><b>");
  assert.equal(await page.evaluate("document.title"), "tracegate");
  assert.equal(await page.evaluate("document.querySelectorAll('main script, main img, main b').length"), 0);
  assert.equal(await page.evaluate("document.documentElement.scrollWidth > innerWidth"), false);
  const raw = `/(?![\\t\\n])[\\p{Cc}\\u202e\\u200b]/u.exec(document.querySelector("main").textContent)?.[0]`;
  assert.equal(await page.evaluate(raw), undefined);
  assert.deepEqual(page.messages, []);
});

test("names in three scripts are legible, and characters that hide or reorder text are shown", async (t) => {
  const page = await open(t, `${gateway.url("admin")}/ui/#/routes`);
  if (page === undefined) return;
  for (const name of NAMES) await shows(page, name);
  for (const hash of ["#/routes", "#/explain?url=http://a.example/"]) {
    await page.evaluate(`location.hash = "${hash}"`);
    await shows(page, hash === "#/routes" ? `a${SHOWN}b` : "route hidden");
    assert.equal(await page.evaluate(`/[\u202e\u200b]/.test(document.querySelector("main").textContent)`), false);
  }
  assert.deepEqual(page.messages, []);
});

test("words written from right to left do not move what stands beside them", async (t) => {
  const values = ["שלום", "42", "عالم كبير", "10.0.0.1"];
  const fields = values.map((value) => `&header=${header(value)}`).join("");
  const page = await open(t, `${gateway.url("admin")}/ui/#/explain?url=http://a.example/${fields}`);
  if (page === undefined) return;
  const sentence = `header x-name: ${values.map((value) => JSON.stringify(value)).join(", ")} is not "${NAMES[0]}"`;
  await shows(page, sentence);
  /** Where each character of the line with the sentence is drawn, by its place in the text. */
  const lefts = (await page.evaluate(`(() => {
    const line = [...document.querySelectorAll(".tree li > span")].find((each) => each.textContent.includes(${JSON.stringify(sentence)}));
    const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
    const lefts = [];
    while (walker.nextNode())
      for (let at = 0; at < walker.currentNode.length; at++) {
        const range = document.createRange();
        range.setStart(walker.currentNode, at);
        range.setEnd(walker.currentNode, at + 1);
        lefts.push([walker.currentNode.data[at], range.getBoundingClientRect().left]);
      }
    return lefts;
  })()`)) as readonly (readonly [character: string, left: number])[];
  const others = lefts.filter(([character]) => /[^\u0590-\u06ff ]/.test(character));
  const text = (list: typeof lefts): string => list.map(([character]) => character).join("");
  assert.equal(text(others.toSorted(([, a], [, b]) => a - b)), text(others));
  const hebrew = lefts.filter(([character]) => values[0]?.includes(character));
  assert.equal(text(hebrew.toSorted(([, a], [, b]) => b - a)), "שלום");
  assert.deepEqual(page.messages, []);
});
