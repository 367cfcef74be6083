import assert from "node:assert/strict";
import { test } from "node:test";
import type { ContentCoding } from "../contract/types.ts";
import { negotiate } from "./accept-encoding.ts";

const chosen = (...values: string[]): ContentCoding | undefined =>
  negotiate(
    values.flatMap((value) => ["accept-encoding", value]),
    ["zstd", "br", "gzip"],
  );

test("the highest weight wins, and the order of the configuration among equals", () => {
  assert.equal(chosen("gzip, deflate, br, zstd"), "zstd");
  assert.equal(chosen("gzip, deflate, br"), "br");
  assert.equal(chosen("zstd;q=0.5, br;q=0.7, gzip;q=0.9"), "gzip");
  assert.equal(chosen("br;q=0.8 , gzip ; q=0.800"), "br");
  assert.equal(chosen("gzip", "br"), "br");
  assert.equal(chosen("X-GZIP"), "gzip");
});

test("a weight of 0 excludes, and * matches codings that are not listed", () => {
  assert.equal(chosen("zstd;q=0, br;q=0.0, gzip;q=0.001"), "gzip");
  assert.equal(chosen("zstd;q=0, *"), "br");
  assert.equal(chosen("*;q=0"), undefined);
  assert.equal(chosen("gzip;q=0.5, *;q=0"), "gzip");
});

test("content without a coding is sent when the client prefers it, or accepts nothing that is offered", () => {
  assert.equal(negotiate([], ["gzip"]), undefined);
  assert.equal(chosen(""), undefined);
  assert.equal(chosen("deflate, compress"), undefined);
  assert.equal(chosen("identity"), undefined);
  assert.equal(chosen("identity, gzip;q=0.5"), undefined);
  assert.equal(chosen("identity;q=0.5, gzip;q=0.5"), "gzip");
  assert.equal(chosen("identity;q=0, gzip;q=0.1"), "gzip");
  // What is not listed, content without a coding included, is preferred to gzip.
  assert.equal(chosen("gzip;q=0.5, br;q=0, zstd;q=0, *"), undefined);
});

test("invalid members count as absent", () => {
  for (const member of ["br;q=2", "br;q=0.1234", "br;q=-1", "br q=1", "b r", "br;q="])
    assert.equal(chosen(`${member}, gzip;q=0.1`), "gzip", member);
});
