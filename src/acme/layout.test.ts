import assert from "node:assert/strict";
import { test } from "node:test";
import { httpChallenge, tlsChallenge } from "./layout.ts";

test("only tokens and names become names of files: clients choose both", () => {
  assert.equal(
    httpChallenge("LoqXcYV8q5ONbJQxbmR7SCTNo3tiAXDfowyjxAjEuX0"),
    "LoqXcYV8q5ONbJQxbmR7SCTNo3tiAXDfowyjxAjEuX0",
  );
  for (const token of [
    "",
    "short",
    "../../../../etc/passwd",
    "LoqXcYV8q5ONbJQxbm/../x",
    "LoqXcYV8q5ONbJQxbm.tls",
    "a".repeat(257),
  ])
    assert.equal(httpChallenge(token), undefined, token);
  assert.equal(tlsChallenge("shop.example"), "shop.example.tls-alpn");
  for (const name of ["", "../shop.example", "a/b", "a\0", "a".repeat(254)])
    assert.equal(tlsChallenge(name), undefined, name);
});
