import assert from "node:assert/strict";
import { test } from "node:test";
import { shortRoute } from "./route-names.ts";

test("a route key is as short as possible among the others", () => {
  const key = "default/default/bind/3000/listener0/default/api";
  assert.equal(shortRoute(key), "api");
  assert.equal(shortRoute(key, [key, "default/default/bind/3000/listener0/default/my-api"]), "api");
  assert.equal(shortRoute(key, [key, "default/default/bind/3000/listener0/other/api"]), "default/api");
  assert.equal(shortRoute("api", ["api", "x/api"]), "api");
});
