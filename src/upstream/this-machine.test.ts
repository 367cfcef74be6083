import assert from "node:assert/strict";
import { test } from "node:test";
import { isThisMachine } from "./this-machine.ts";

test("loopback and unspecified addresses, however they are written", () => {
  for (const address of [
    "127.0.0.1",
    "127.8.9.1",
    "0.0.0.0",
    "::1",
    "0:0:0:0:0:0:0:1",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:0:0",
  ])
    assert.ok(isThisMachine(address), address);
  for (const address of ["10.0.0.1", "128.0.0.1", "::2", "fe80::1", "::ffff:10.0.0.1"])
    assert.ok(!isThisMachine(address), address);
});
