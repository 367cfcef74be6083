import assert from "node:assert/strict";
import { test } from "node:test";
import { backendName } from "./backend-name.ts";

const INLINE = "/shop/web.01.http/backend0";

test("backends are called by their name, others by where they lead", () => {
  const target = { type: "static", host: "10.0.0.7", port: 8080 } as const;
  assert.equal(backendName({ key: "/api", target }), "/api");
  assert.equal(backendName({ key: "/shop/api", target }), "shop/api");
  assert.equal(backendName({ key: INLINE, target }), "10.0.0.7:8080");
  assert.equal(backendName({ key: INLINE, target: { type: "routeGroup", name: "a" } }), "a");
  assert.equal(backendName({ key: INLINE, target: { type: "invalid", reference: "shop/gone" } }), "shop/gone");
  assert.equal(backendName({ key: INLINE, target: { type: "invalid", reference: "" } }), INLINE);
});

test("a service of a cluster is called as its users do", () => {
  const named = (key: string): string => backendName({ key: INLINE, target: { type: "service", key, port: 80 } });
  assert.equal(named("shop/web.shop.svc.cluster.local"), "shop/web:80");
  assert.equal(named("shop/udp.dns.shop.svc.cluster.local"), "shop/dns:80");
  assert.equal(named("shop/web.other.svc.cluster.local"), "shop/web.other.svc.cluster.local:80");
  assert.equal(named("default/api.internal"), "default/api.internal:80");
});
