import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { fc } from "../../../test/helpers/property.ts";
import type { Fields } from "../../base/fields.ts";
import { EVENTS } from "../fixtures/trace.ts";
import { rowsOf } from "../rows.ts";
import { htmlPage } from "./html.ts";

const PAGE = htmlPage(rowsOf(EVENTS));

/** The elements of a page with their attributes, without text. */
function markup(page: string): string[] {
  return page.replace(/<style>[\s\S]*?<\/style>/, "").match(/<[^>]*>/g) ?? [];
}

test("the page has the outcome, the decisions, and every event with what it changed", () => {
  assert.match(
    PAGE,
    /<h1 class="error">POST http:\/\/shop\.example\.com\/api\/cart\?debug=1 <span>→ 503<\/span><\/h1>/,
  );
  assert.match(PAGE, /<dt>why<\/dt><dd>backend 127\.0\.0\.1:9000 returned 503<\/dd>/);
  assert.match(PAGE, /<dt>redacted<\/dt><dd>header authorization<\/dd>/);
  assert.match(PAGE, /<li class="level1 no"><b>✗<\/b> route assets/);
  assert.equal(PAGE.match(/<li><details>/g)?.length, EVENTS.length);
  assert.match(PAGE, /<ins>\+ +x-tenant: a<\/ins>/);
  assert.match(PAGE, /&quot;item&quot;: &quot;teapot&quot;/);
});

test("bars show when an event was and how long a call took", () => {
  assert.match(PAGE, /<rect class="call" x="104\.8" width="845\.4" height="10"><title>call 2\.122 ms<\/title>/);
  const timing = { reusedConnection: false, dns: "0.000100000s", connect: "0.000200000s", tls: "0.000400000s" };
  const called = { type: "backendCallResult", status: 200, error: null, timing };
  const page = htmlPage(rowsOf([{ eventStart: 0, eventEnd: 1000, severity: "info", message: called }]));
  const bars = [...page.matchAll(/<rect class="(\w+)" x="([\d.]+)" width="([\d.]+)"/g)].map(([, ...bar]) =>
    bar.join(" "),
  );
  assert.deepEqual(bars, ["dns 0.0 100.0", "connect 100.0 200.0", "tls 300.0 400.0", "call 700.0 300.0"]);
});

test("the page loads nothing and runs nothing, and its policy forbids both", () => {
  const [, style = ""] = /<style>([\s\S]*?)<\/style>/.exec(PAGE) ?? [];
  const digest = createHash("sha256").update(style).digest("base64");
  assert.ok(
    PAGE.includes(`content="default-src 'none'; style-src 'sha256-${digest}'; base-uri 'none'; form-action 'none'"`),
  );
  assert.doesNotMatch(markup(PAGE).join(""), /<(?:script|link|img|iframe|object|base|form)| (?:src|href|style|on\w+)=/);
  assert.doesNotMatch(style, /url\(|@import/);
});

test("nothing in a trace becomes markup, or reorders or hides text", () => {
  const nasty = fc.constantFrom(
    "</pre><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><b>',
    "'><b>",
    "&lt;b&gt;",
    "\u202eevil",
    "\u0000",
    "\u001b[2J",
    "<!--",
    "]]>",
  );
  // Whatever the text, so also the type of an event, its stage and its scope.
  const places = [
    "shop.example.com",
    "curl/8.5.0",
    "no Origin header",
    "signed-in",
    "127.0.0.1:9000",
    "initial request",
    "cors",
    "nginx/1.22.1",
    "final request",
  ];
  fc.assert(
    fc.property(nasty, fc.constantFrom(...places), (text, place) => {
      const events = JSON.parse(
        JSON.stringify(EVENTS).replaceAll(place, JSON.stringify(text).slice(1, -1)),
      ) as Fields[];
      const page = htmlPage(rowsOf(events));
      const [before, after] = [PAGE, page].map((each) => markup(each).map((tag) => tag.replace(/ .*/, "")));
      assert.deepEqual(
        after?.filter((tag) => !before?.includes(tag)),
        [],
      );
      assert.doesNotMatch(markup(page).join(""), /onerror|alert/);
      assert.doesNotMatch(page, /(?!\n)[\p{Cc}\p{Bidi_Control}]/u);
    }),
    { numRuns: 40 },
  );
});

test("a page has at most 300 KiB; what is left out is said", () => {
  const assertFits = (events: readonly Fields[]) => {
    const page = htmlPage(rowsOf(events));
    assert.ok(Buffer.byteLength(page) <= 300 * 1024, String(Buffer.byteLength(page)));
    assert.match(page, /left out; the trace file has everything/);
    assert.match(page, /<dt>why<\/dt>/);
  };
  const body = Buffer.from("漢\n".repeat(300_000)).toString("base64");
  const copies = EVENTS.flatMap((event) => [event, event, event]);
  const large = JSON.parse(
    JSON.stringify(copies)
      .replaceAll("dHJ5IGFnYWluIGluIGEgc2Vjb25k", body)
      .replaceAll("eyJpdGVtIjoidGVhcG90IiwiY291bnQiOjJ9", body),
  );
  const progress = {
    type: "streamProgress",
    received: { chunks: 1, bytes: 2 },
    sent: { chunks: 1, bytes: 2 },
    idle: "0s",
    longestIdle: "0s",
  };
  const many = EVENTS.flatMap((event, i) =>
    i === 5 ? [event, ...Array(20_000).fill({ eventEnd: 200, severity: "info", message: progress })] : [event],
  );
  const headers = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`x-field-${i}`, "<&>".repeat(100)]));
  const wide = JSON.parse(
    JSON.stringify(EVENTS).replaceAll('"headers":{', `"headers":{${JSON.stringify(headers).slice(1, -1)},`),
  );
  for (const events of [large, many, wide]) assertFits(events);
});

test("no text is too long for a page, wherever it stands", () => {
  const long = "<".repeat(400_000);
  const texts = [
    "POST",
    "http://shop.example.com/api/cart?debug=1",
    "initial request",
    "requestStarted",
    "127.0.0.1:9000",
    "cors",
  ];
  const event = {
    eventEnd: 1,
    severity: "info",
    scope: [long],
    message: { type: long, stage: long, requestState: {} },
  };
  const finished = { eventEnd: 2, severity: "info", message: { type: "requestFinished", status: long, error: long } };
  for (const text of texts) {
    const events: Fields[] = JSON.parse(JSON.stringify(EVENTS).replaceAll(text, long));
    assert.ok(Buffer.byteLength(htmlPage(rowsOf([event, ...events, finished]))) <= 300 * 1024, text);
  }
});

test("events of another version, and a trace of a connection, still make a page", () => {
  const other = htmlPage(rowsOf([{ message: { type: "policy", kind: "new" } }, { message: { type: "newer", a: 1 } }]));
  assert.match(other, /cannot be shown as a tree/);
  assert.match(
    htmlPage(rowsOf([{ eventEnd: 5, message: { type: "requestStarted", protocol: "tcp" } }])),
    /Nothing was decided/,
  );
});
