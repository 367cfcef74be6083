import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "../config/load.ts";
import { inPrecedence } from "../ir/route-order.ts";

test("routes stand in the order in which a router looks at them, whatever their order in the file", () => {
  const at = (name: string, hostnames: readonly string[], ...paths: readonly object[]): object => ({
    name,
    hostnames,
    matches: paths.map((path) => ({ path })),
    backends: [{ host: "127.0.0.1:1" }],
  });
  const routes = [
    at("any", [], { pathPrefix: "/long/path/of/any" }),
    at("wide", ["*.example"], { pathPrefix: "/" }),
    at("narrow", ["*.shop.example"], { pathPrefix: "/" }),
    at("prefix", ["a.shop.example"], { pathPrefix: "/a/b" }),
    at("regex", ["a.shop.example"], { regex: "/a/[b]" }),
    at("exact", ["a.shop.example"], { exact: "/a" }),
    at("second", ["*.example", "a.shop.example"], { pathPrefix: "/" }, { exact: "/a/long" }),
  ];
  const text = JSON.stringify({ binds: [{ port: 80, listeners: [{ routes }] }] });
  const loaded = loadConfig({ kind: "text", text, name: "test" }, {});
  assert.ok(loaded.ok, JSON.stringify(loaded));
  const written = loaded.ir.binds[0]?.listeners[0]?.routes ?? [];
  assert.deepEqual(
    inPrecedence(written).map(({ name }) => name),
    ["second", "exact", "regex", "prefix", "narrow", "wide", "any"],
  );

  const [first, ...others] = written.map((route) => ({ ...route, hostnames: [] }));
  assert.ok(first);
  const unmatched = [{ ...first, name: "x", matches: [] }, ...others, { ...first, name: "y", matches: [] }];
  assert.deepEqual(
    inPrecedence(unmatched)
      .map(({ name }) => name)
      .slice(-2),
    ["x", "y"],
  );
});
