import assert from "node:assert/strict";
import { test } from "node:test";
import { certificateFile, httpChallenge, tlsChallenge } from "./layout.ts";

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

test("each storage and each directory has its own certificates", () => {
  const issuers = ["/a", "/b"].flatMap((storage) =>
    ["https://ca.example/one", "https://ca.example/two"].map((directory) => ({ storage, directory })),
  );
  const files = issuers.map((issuer) => certificateFile(issuer, "shop.example"));
  assert.equal(new Set(files).size, issuers.length);
  assert.deepEqual(
    issuers.map((issuer) => certificateFile(issuer, "shop.example")),
    files,
  );
  assert.match(files[0] ?? "", /^\/a\/ca\.example-[0-9a-f]{8}\/shop\.example\.pem$/);
});
