import assert from "node:assert/strict";
import { test } from "node:test";
import { hashOf, placeOf, requestHash } from "./place.ts";

test("a link leads back to the place that made it", () => {
  const where = 'response.code >= 400 && request.path == "/a?b#c"';
  const { path, query } = placeOf(hashOf("/requests", { where, route: "" }));
  assert.equal(path, "/requests");
  assert.deepEqual([...query], [["where", where]]);
  assert.equal(placeOf("").path, "/");
  assert.equal(placeOf("#/requests").query.toString(), "");
});

test("an id that a client chose stays one segment", () => {
  assert.equal(placeOf(requestHash("a/b?c#d")).path, "/r/a%2Fb%3Fc%23d");
});
