import assert from "node:assert/strict";
import { test } from "node:test";
import { formatSize, intendedSizes, parseSize } from "./sizes.ts";

test("a size has a decimal unit, a binary one, or none", () => {
  const sizes = {
    "0": 0,
    "512": 512,
    "512B": 512,
    "4kB": 4000,
    "4KB": 4000,
    "4KiB": 4096,
    "10MB": 10_000_000,
    "1.1MB": 1_100_000,
    "1.5MiB": 1_572_864,
    "0.3KiB": 307,
    "1GB": 1e9,
    "2GiB": 2_147_483_648,
    "1TB": 1e12,
    "1TiB": 1_099_511_627_776,
  };
  for (const [text, bytes] of Object.entries(sizes)) assert.equal(parseSize(text), bytes, text);
  for (const text of [
    "",
    "MB",
    "-1",
    "-1MB",
    "1e3",
    "10 MB",
    "10mb",
    "10M",
    "10Mi",
    ".5MB",
    "1.MB",
    "1MBs",
    "9007TiB",
    "9007199254740992",
  ])
    assert.equal(parseSize(text), undefined, text);
});

test("what people write elsewhere is turned into a size, or into two if it can mean both", () => {
  const intended = {
    "10 MB": ["10MB"],
    "10mb": ["10MB"],
    "10 megabytes": ["10MB"],
    "1.5 gigabyte": ["1.5GB"],
    "4kilobytes": ["4KB"],
    "64 bytes": ["64B"],
    "10Mi": ["10MiB"],
    "10mib": ["10MiB"],
    "2 gibibytes": ["2GiB"],
    "3 tebibytes": ["3TiB"],
    "10m": ["10MB", "10MiB"],
    "8k": ["8KB", "8KiB"],
    "": [],
    many: [],
    "-1": [],
    "10s": [],
  };
  for (const [text, sizes] of Object.entries(intended)) {
    assert.deepEqual(intendedSizes(text), sizes, text);
    for (const size of sizes) assert.notEqual(parseSize(size), undefined, size);
  }
});

test("a number of bytes is shown with the largest binary unit that divides it", () => {
  const texts = [0, 1000, 1024, 65_536, 1_048_576, 2 ** 31].map(formatSize);
  assert.deepEqual(texts, ["0", "1000", "1KiB", "64KiB", "1MiB", "2GiB"]);
});
