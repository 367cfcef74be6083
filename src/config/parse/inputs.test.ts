import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs, {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { ABSENT, DiskDigests, InputReader, isReadOnce, UNKNOWN } from "./inputs.ts";

suite("inputs", () => {
  let folder: string;
  const path = (name: string): string => join(folder, name);

  before(() => {
    folder = mkdtempSync(join(tmpdir(), "tracegate-inputs-"));
    writeFileSync(path("a"), "one");
    writeFileSync(path("b"), "two");
  });
  after(() => rmSync(folder, { recursive: true }));

  test("the hash is that of the contents one after the other; a file that is named twice is read once", () => {
    const reader = new InputReader();
    assert.equal(reader.readText(path("a")), "one");
    assert.equal(reader.readText(path("b")), "two");
    writeFileSync(path("a"), "changed");
    assert.equal(reader.readText(path("a")), "one");
    assert.equal(reader.inputs.hash, createHash("sha256").update("onetwo").digest("hex"));
    assert.deepEqual([...reader.inputs.files.keys()], [path("a"), path("b")]);
    assert.notEqual(new DiskDigests().of(path("a")), reader.inputs.files.get(path("a")));
    assert.equal(new DiskDigests().of(path("b")), reader.inputs.files.get(path("b")));
  });

  test("an unreadable file is recorded with the reason, and compares equal while it stays unreadable", () => {
    const reader = new InputReader();
    const disk = new DiskDigests();
    writeFileSync(path("large"), "");
    truncateSync(path("large"), 65 * 1024 * 1024);
    assert.throws(() => reader.readText(path("none")), /does not exist/);
    assert.throws(() => reader.readText(path("none")), /does not exist/);
    assert.throws(() => reader.readText(path("a/b")), /does not exist/);
    assert.throws(() => reader.readText(folder), /it is a folder/);
    assert.throws(() => reader.readText(path("large")), /more than 64 MiB/);
    for (const missing of ["none", "a/b"]) assert.equal(reader.inputs.files.get(path(missing)), ABSENT, missing);
    for (const [file, digest] of reader.inputs.files) assert.equal(disk.of(file), digest, file);
  });

  test("an unchanged file is read again while its last change is recent, then once a minute", () => {
    const stats = statSync(path("b"));
    const changedAt = Math.max(stats.mtimeMs, stats.ctimeMs);
    let now = changedAt + 2000;
    const disk = new DiskDigests(
      () => now,
      () => stats,
    );
    const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
    const looksLike = (text: string): void => assert.equal(disk.of(path("b")), sha256(text));
    const write = (text: string): void => writeFileSync(path("b"), text);
    looksLike("two");
    write("2nd");
    looksLike("2nd");
    now++;
    write("3rd");
    looksLike("3rd");
    write("4th");
    looksLike("3rd");
    now += 59_999;
    looksLike("3rd");
    now++;
    looksLike("4th");
  });

  test("time stamps in the future, as an archive may have them, do not cost a read at each check", () => {
    const stats = statSync(path("a"));
    let now = Math.min(stats.mtimeMs, stats.ctimeMs) - 1000;
    const disk = new DiskDigests(
      () => now,
      () => stats,
    );
    const change = (text: string): boolean => {
      const before = disk.of(path("a"));
      writeFileSync(path("a"), text);
      return disk.of(path("a")) !== before;
    };
    assert.equal(change("a moment ahead"), true);
    now -= 10_000;
    assert.equal(change("far ahead"), false);
  });

  test("a mounted folder that is swapped has changed, although size, times and inode are the same", () => {
    for (const version of ["v1", "v2"]) {
      mkdirSync(path(version));
      writeFileSync(path(`${version}/file`), version);
    }
    const swap = (version: string): void => {
      symlinkSync(version, path("..tmp"));
      renameSync(path("..tmp"), path("..data"));
    };
    const stats = statSync(path("v1/file"));
    const disk = new DiskDigests(
      () => stats.mtimeMs + 10_000,
      () => stats,
    );
    swap("v1");
    const before = disk.of(path("..data/file"));
    swap("v2");
    assert.notEqual(disk.of(path("..data/file")), before);
  });

  test("a file that could not be looked at is looked at again", (t) => {
    const disk = new DiskDigests(() => Date.now() + 10_000);
    const mocked = t.mock.method(fs, "openSync", () => {
      throw Object.assign(new Error("too many open files"), { code: "EMFILE" });
    });
    syncBuiltinESMExports();
    assert.equal(disk.of(path("b")), UNKNOWN);
    mocked.mock.restore();
    syncBuiltinESMExports();
    assert.match(disk.of(path("b")), /^[0-9a-f]{64}$/);
  });

  test("names in a folder are in byte order, which is not that of UTF-16", () => {
    mkdirSync(path("names"));
    for (const name of ["\u{1F600}.yaml", "\uFF5E.yaml", "b.yml", "a.json", ".hidden.yaml", "a.yaml~"])
      writeFileSync(path(`names/${name}`), "");
    const names = ["a.json", "b.yml", "\uFF5E.yaml", "\u{1F600}.yaml"];
    assert.deepEqual(new InputReader().names(path("names")), names);
  });

  test("a pipe is not read to see whether it has changed", () => {
    execFileSync("mkfifo", [path("pipe")]);
    // It has no writer: a read would never end.
    assert.equal(new DiskDigests().of(path("pipe")), "special");
  });
});

test("streams are read once", () => {
  for (const path of ["-", "/dev/stdin", "/dev/fd/3", "/proc/self/fd/0"]) assert.equal(isReadOnce(path), true, path);
  for (const path of ["gateway.yaml", "/dev/shm/gateway.yaml", "./-"]) assert.equal(isReadOnce(path), false, path);
});
