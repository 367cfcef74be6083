import assert from "node:assert/strict";
import { test } from "node:test";
import type { Activation } from "../index.ts";
import { assertFailures, assertTrue, evaluate, failureOf, REQUEST } from "../testing/evaluate.ts";

const withBody = (body: Uint8Array): Activation => ({ request: { ...REQUEST, body } });

test("base64 encodes text and bytes, and decodes both alphabets with or without padding", () => {
  assertTrue([
    'base64.decode(base64.encode("é")) == b"é"',
    'base64.encode(b"\\xff\\xfe\\xfd") == "//79"',
    'base64.decode("//79") == b"\\xff\\xfe\\xfd" && base64.decode("__79") == b"\\xff\\xfe\\xfd"',
    '"hello".base64Encode() == "aGVsbG8=" && base64Encode(b"hello") == "aGVsbG8="',
    'string("aGVsbG8=".base64Decode()) == "hello" && base64Decode("Zg") == b"f"',
    'base64.decode("") == b""',
  ]);
});

test("invalid base64 fails instead of being truncated", () => {
  const not = /^the text is not base64$/;
  assertFailures({
    'base64.decode("a b=")': not,
    'base64.decode("Zg===")': not,
    'base64.decode("Z=g=")': not,
    'base64.decode("Zg==Zg==")': not,
    'base64.decode("Zm9vY")': not,
  });
});

test("percent-encoding leaves only unreserved characters as they are", () => {
  assertTrue([
    'url.decode(url.encode("a b&c")) == "a b&c"',
    'url.encode("!*() -._~é") == "%21%2A%28%29%20-._~%C3%A9"',
    'url.encode(b"é/") == "%C3%A9%2F"',
    'url.decode("a+b%2fc") == "a+b/c"',
  ]);
  assertFailures({ 'url.decode("%zz")': /percent-encoded UTF-8/, 'url.decode("%ff")': /percent-encoded UTF-8/ });
});

test("forms: repeated fields are lists, null is left out, names are sorted", () => {
  assertTrue([
    'form.decode(form.encode({"a": "1 2"})).a == "1 2"',
    'form.decode("a=1&b=2&a=3") == {"a": ["1", "3"], "b": "2"} && form.encode({"b": null, "c": ["1", "2"], "a": "x y"}) == "a=x+y&c=1&c=2"',
    'form.decode(b"q=%C3%A9&empty=") == {"q": "é", "empty": ""}',
    'form.encode({"n": 1, "ok": true}) == "n=1&ok=true"',
  ]);
  assertFailures(
    { "form.decode(request.body)": /not UTF-8, so they are not a form/ },
    withBody(Buffer.from([0x61, 0xff])),
  );
});

test("digests are lower-case hexadecimal, the same for text and its UTF-8", () => {
  assertTrue([
    'md5.encode("a") == "0cc175b9c0f1b6a831c399e269772661"',
    'sha1.encode("abc") == "a9993e364706816aba3e25717850c26c9cd0d89d"',
    'sha256.encode("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"',
    'sha256.encode("é") == sha256.encode(b"é")',
  ]);
});

test("JSON numbers without a fraction are exact ints as far as an int reaches, others doubles", () => {
  assertTrue([
    'json("{\\"n\\": 3}").n + 1 == 4 && type(json("3")) == int && type(json("3.5")) == double',
    'json("[1, [2], {\\"a\\": 3}]") == [1, [2], {"a": 3}] && json("[1, 2]").map(n, n * 2) == [2, 4]',
    'json("9007199254740993") == 9007199254740993 && toJson({"n": 9007199254740993}) == "{\\"n\\":9007199254740993}"',
    'json("-9223372036854775808") == -9223372036854775807 - 1',
    'toJson(json("{\\"n\\":9223372036854775807}")) == "{\\"n\\":9223372036854775807}" && type(json("9223372036854775808")) == double',
    'json("\\"1234567890123456789\\"") == "1234567890123456789"',
  ]);
});

test("JSON is read from text and bodies, and written with every type of value", () => {
  const activation = withBody(Buffer.from('{"user":{"name":"Zoë"}}'));
  assertTrue(
    [
      'json(request.body).user.name == "Zoë"',
      "json(request.body) == json(string(request.body))",
      'jsonField("{\\"a\\":1}", "a") == 1 && jsonField(request.body, "user").name == "Zoë"',
      'toJson({"a": [1, 2.5, null]}) == "{\\"a\\":[1,2.5,null]}"',
      '{"t": timestamp(0), "b": b"f"}.toJson() == "{\\"t\\":\\"1970-01-01T00:00:00Z\\",\\"b\\":\\"Zg==\\"}"',
    ],
    activation,
  );
  assertFailures({
    'json("{")': /^the text is not JSON$/,
    'json(b"\\xff")': /not UTF-8, so they are not JSON/,
    'jsonField("{", "a")': /^the text is not JSON$/,
  });
});

test("a field that JSON does not have is absent, text that is not JSON is not", () => {
  assertTrue(['default(jsonField("{}", "a"), "none") == "none"', 'default(jsonField("[1]", "a"), "none") == "none"']);
  assert.equal(failureOf('jsonField("{}", "a")').absent, true);
  assert.equal(failureOf('jsonField("{", "a")').absent, false);
  assert.equal(failureOf(`jsonField("{}", "${"n".repeat(500)}")`).what, `no such key: ${"n".repeat(100)}`);
});

test("the payload of a JWT is read without its signature", () => {
  assertTrue([
    'unvalidatedJwtPayload("e30.eyJzdWIiOiJ4In0.") == {"sub": "x"}',
    'unvalidatedJwtPayload("e30.eyJleHAiOjEyfQ.").exp + 1 == 13',
  ]);
  assertFailures({
    'unvalidatedJwtPayload("opaque")': /^the text is not a JWT$/,
    'unvalidatedJwtPayload("e30.%%%.")': /^the text is not base64$/,
    'unvalidatedJwtPayload("e30.Zg.")': /^the text is not JSON$/,
  });
});

test("a large body is parsed once for all the rules that read it", () => {
  const body = Buffer.from(JSON.stringify({ n: 1, text: "a".repeat(700_000) }));
  const text = Array.from({ length: 4 }, () => "json(request.body).n").join(" + ");
  assert.equal(evaluate(text, withBody(body)), 4n);
  assert.match(
    failureOf(text.replaceAll("request.body", "string(request.body)"), withBody(body)).what,
    /too much work/,
  );
});
