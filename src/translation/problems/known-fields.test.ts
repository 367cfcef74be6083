import assert from "node:assert/strict";
import { test } from "node:test";
import { configFile } from "../../config/schema/config.ts";
import { knownFields } from "./known-fields.ts";

const known = knownFields(configFile);

test("fields along a path: lists, maps, defaults and alternatives", () => {
  assert.ok(known([]).includes("binds"));
  assert.deepEqual(known(["config", "dns"]), ["lookupFamily", "denyDomains", "denyNetworks", "edns0"]);
  assert.ok(known(["gateways", "any-name", "listeners", 3]).includes("hostname"));
  assert.deepEqual(known(["routes", 0, "policies", "urlRewrite", "authority"]), ["full", "host", "port"]);
});

test("nothing where there is no object", () => {
  assert.deepEqual(known(["binds"]), []);
  assert.deepEqual(known(["binds", 0, "port", "x"]), []);
  assert.deepEqual(known(["constructor"]), []);
  assert.deepEqual(known(["config", "toString", "name"]), []);
});
