import assert from "node:assert/strict";
import { test } from "node:test";
import { detailsText } from "./details.ts";

test("details read as one line", () => {
  assert.equal(detailsText("condition met, applying policy"), "condition met, applying policy");
  assert.equal(detailsText({ valid: false, reason: "no token" }), 'valid=false reason="no token"');
  assert.equal(detailsText({ path: { prefix: "/" }, absent: undefined }), "path.prefix=/");
  assert.equal(detailsText({ failed: ["a", "b"], next: null, empty: "" }), 'failed=["a","b"] next=null empty=""');
  assert.equal(detailsText({ say: 'a"b', url: "http://a/?b=c" }), 'say="a\\"b" url="http://a/?b=c"');
  assert.equal(detailsText({}), "");
  assert.equal(detailsText({ long: "x".repeat(1000) }).length, 501);
});
