import assert from "node:assert/strict";
import { test } from "node:test";
import { cookiePairs, findCookie } from "./cookies.ts";

test("pairs are split at semicolons, names end at the first equals sign", () => {
  assert.deepEqual(
    cookiePairs('a=1; b = "x=y" ;;\tc; =d').map(({ name, value }) => [name, value]),
    [
      ["a", "1"],
      ["b", '"x=y"'],
      ["c", undefined],
      ["", "d"],
    ],
  );
});

test("a pair is kept as it was sent, for callers that forward it", () => {
  assert.deepEqual(
    cookiePairs(" a = 1 ;b=2").map(({ text }) => text),
    ["a = 1", "b=2"],
  );
});

test("the first cookie of a name that has a value counts, without its quotes", () => {
  assert.equal(findCookie("sid; sid=1; sid=2", "sid"), "1");
  assert.equal(findCookie('sid="a b"', "sid"), "a b");
  assert.equal(findCookie('sid="', "sid"), '"');
  assert.equal(findCookie("xsid=1; sidx=2", "sid"), undefined);
});

test("bytes of UTF-8 text at the end of a value are not white space", () => {
  const latin1 = Buffer.from("déjà").toString("latin1");
  assert.equal(findCookie(`a=${latin1}; b=1`, "a"), latin1);
});
