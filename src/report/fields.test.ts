import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesOf, selectedName } from "./fields.ts";

test("candidates have the names of their routes, and the rule by which they lost", () => {
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
    { name: "rest", matched: true, reason: "precedence: longer path", because: "longer path" },
    { name: "7", matched: false, reason: "", because: "" },
  ]);
  assert.deepEqual(candidatesOf({}), []);
});

test("routes of Kubernetes are called by object and rule", () => {
  const object = { kind: "HTTPRoute", namespace: "shop", name: "web" };
  const message = {
    selectedRoute: "shop/web.01.http",
    evaluatedRoutes: ["shop/web.00.http", "shop/web.01.http"],
    candidates: [
      { route: "shop/web.01.http", matched: true, reason: "selected", origin: { object, path: ["spec", "rules", 1] } },
      { route: "shop/web.00.http", rule: "all", matched: false, origin: { object, path: ["spec", "rules", 0] } },
    ],
  };
  assert.equal(selectedName(message), "HTTPRoute shop/web rules[1]");
  assert.deepEqual(
    candidatesOf(message).map(({ name }) => name),
    ["HTTPRoute shop/web rules[1]", "HTTPRoute shop/web rule all"],
  );
});
