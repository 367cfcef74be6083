import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesOf, shortRoute } from "./fields.ts";

test("a route key is as short as possible among the others", () => {
  const key = "default/default/bind/3000/listener0/default/api";
  assert.equal(shortRoute(key), "api");
  assert.equal(shortRoute(key, [key, "default/default/bind/3000/listener0/default/my-api"]), "api");
  assert.equal(shortRoute(key, [key, "default/default/bind/3000/listener0/other/api"]), "default/api");
  assert.equal(shortRoute("shop/cart.00.http"), "cart.00.http");
  assert.equal(shortRoute("api", ["api", "x/api"]), "api");
});

test("candidates have short names, also in their reasons", () => {
  const message = {
    selectedRoute: "l/default/api",
    evaluatedRoutes: ["l/default/api", "l/default/rest"],
    candidates: [
      {
        route: "l/default/rest",
        matched: true,
        reason: "precedence: l/default/api is more specific (longer path)",
        because: "longer path",
      },
      { route: 7, matched: "yes" },
    ],
  };
  assert.deepEqual(candidatesOf(message), [
    { name: "rest", matched: true, reason: "precedence: api is more specific (longer path)", because: "longer path" },
    { name: "7", matched: false, reason: "", because: "" },
  ]);
  assert.deepEqual(candidatesOf({}), []);
});
