import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fc } from "../../../test/helpers/property.ts";
import type { HeaderList } from "../message/message.ts";
import { isFieldValue, isToken, latin1 } from "../message/syntax.ts";
import { parseRequestHead, parseResponseHead, RequestHead, ResponseHead } from "./parse-head.ts";
import { makeFields, requestHeadText, responseHeadText } from "./serialize.ts";

const LIMITS = { maxHeaders: 100, maxTargetSize: 8192 };

const tokenCharacter = fc.constantFrom(..."!#$%&'*+-.^_`|~09azAZ");
const token = fc.string({ unit: tokenCharacter, minLength: 1, maxLength: 12 });
/** Names that are not special to the engine, some known to it and some not. */
const name = fc.oneof(
  fc.constantFrom("accept", "Cookie", "USER-AGENT", "x-b3-traceid", "set-cookie"),
  token.map((t) => `x${t}`),
);
const value = fc
  .string({ unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)) })
  .filter(isFieldValue)
  .map((text) => text.replace(/^[ \t]+|[ \t]+$/g, ""));
const fields = fc.array(fc.tuple(name, value), { maxLength: 20 });

describe("heads", () => {
  test("a request head is read as it was written", () => {
    const target = fc.string({ unit: fc.constantFrom(..."/?a%[]{}"), maxLength: 20 }).map((text) => `/${text}`);
    fc.assert(
      fc.property(token, target, fields, fc.boolean(), (method, path, list, preserve) => {
        const rawNames = list.map(([fieldName]) => fieldName);
        const headers = list.flatMap(([fieldName, text]) => [fieldName.toLowerCase(), text]);
        const text = requestHeadText(
          method,
          path,
          "a:80",
          headers,
          preserve ? rawNames : null,
          "connection: close\r\n\r\n",
        );
        const head = new RequestHead();
        assert.equal(parseRequestHead(text, LIMITS, head, preserve), undefined);
        assert.deepEqual([head.method, head.target, head.host, head.keepAlive], [method, path, "a:80", false]);
        assert.deepEqual(head.headers, headers);
        assert.deepEqual(head.rawNames, preserve ? rawNames : null);
      }),
      { numRuns: 500 },
    );
  });

  test("a response head is read as it was written", () => {
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 599 }), fields, (status, list) => {
        const headers = list.flatMap(([fieldName, text]) => [fieldName.toLowerCase(), text]);
        const text = responseHeadText(status, headers, null, "content-length: 3\r\n");
        const head = new ResponseHead();
        assert.equal(parseResponseHead(text, LIMITS, head, false), undefined);
        assert.equal(head.status, status);
        assert.deepEqual(head.headers, [...headers, "content-length", "3"]);
      }),
      { numRuns: 500 },
    );
  });

  test("the exact bytes", () => {
    assert.equal(
      requestHeadText("GET", "/a?b", "h", ["accept", "*/*"], ["Accept"], "x: y\r\n\r\n"),
      "GET /a?b HTTP/1.1\r\nhost: h\r\nAccept: */*\r\nx: y\r\n\r\n",
    );
    assert.equal(responseHeadText(404, [], null, ""), "HTTP/1.1 404 Not Found\r\n\r\n");
    assert.equal(responseHeadText(799, [], null, ""), "HTTP/1.1 799 \r\n\r\n");
  });
});

test("isToken and isFieldValue accept only what may be sent", () => {
  for (const text of ["a", "X-A_b", "!#$%&'*+-.^_`|~"]) assert.ok(isToken(text));
  for (const text of ["", "a b", "a:", "\xe4", "a\n", "\u0141"]) assert.ok(!isToken(text));
  for (const text of ["", "a b\t\xff"]) assert.ok(isFieldValue(text));
  for (const text of ["a\r", "a\nb", "\0", "\x7f", "\u010d", "\u{1f600}"]) assert.ok(!isFieldValue(text));
});

test("prepared lines are used only in place of the same fields", () => {
  const made = makeFields(["x-for", "1.2.3.4", "x-proto", "http"]);
  const head = (headers: string[], rawNames: string[] | null = null): string =>
    requestHeadText("GET", "/", "h", headers, rawNames, "\r\n", made);
  const start = "GET / HTTP/1.1\r\nhost: h\r\n";
  for (const headers of [
    ["a", "1", "x-for", "1.2.3.4", "x-proto", "http", "b", "2"],
    ["x-for", "6.6.6.6", "x-proto", "http"],
    ["x-for", "1.2.3.4"],
    ["x-proto", "http", "x-for", "1.2.3.4"],
  ])
    assert.equal(head(headers), requestHeadText("GET", "/", "h", headers, null, "\r\n"));
  assert.equal(
    head(["x-for", "1.2.3.4", "x-proto", "http"], ["X-For", "X-Proto"]),
    `${start}X-For: 1.2.3.4\r\nX-Proto: http\r\n\r\n`,
  );
});

test("text from anywhere but the parser has to be checked before it enters a header list", () => {
  // The compiler checks this: with a plain string as the type of values it does not compile.
  const takesAnyText: string extends Parameters<HeaderList["push"]>[1] ? true : false = false;
  assert.equal(takesAnyText, false);
  const headers: HeaderList = [];
  headers.push("x-a", latin1("of a configuration"));
  assert.deepEqual(headers, ["x-a", "of a configuration"]);
  for (const text of ["a\rb", "a\nb", "a\0b", "a\x7fb", "\u0100", "\u20ac", "\ud83d\ude00", "\u010a\u010d"])
    assert.throws(() => latin1(text), TypeError);
  assert.equal(latin1("tab\tand \xe9"), "tab\tand \xe9");
});
