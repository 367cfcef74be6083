import assert from "node:assert/strict";
import { test } from "node:test";
import { suggest } from "./suggest.ts";

test("typing errors, and parts of names", () => {
  const fields = ["name", "hostnames", "matches", "pathPrefix", "policies", "backends", "tls"];
  for (const [written, meant] of [
    ["nmae", "name"],
    ["hostname", "hostnames"],
    ["match", "matches"],
    ["prefix", "pathPrefix"],
    ["Polices", "policies"],
    ["backend", "backends"],
    ["TLS", "tls"],
  ] as const)
    assert.equal(suggest(written, fields), meant, written);
});

test("distant names get no suggestion", () => {
  for (const written of ["colour", "x", "", "timeout"])
    assert.equal(suggest(written, ["name", "tls", "weight"]), undefined, written);
});
