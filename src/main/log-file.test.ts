import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs, {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { LogOutput } from "../base/log.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import type { LogFileSettings } from "../telemetry/settings.ts";
import { LogFile } from "./log-file.ts";

/** A log in a folder of its own; time passes only by `check`. */
function open(t: TestContext, settings: Partial<LogFileSettings> = {}, name = "access.log") {
  t.mock.timers.reset();
  t.mock.timers.enable({ apis: ["setInterval"] });
  const folder = mkdtempSync(join(tmpdir(), "tracegate-log-file-"));
  const path = join(folder, name);
  const said: string[] = [];
  const log = new LogOutput(parseLogFilter("info"), "text", (line) => said.push(line)).logger("gateway");
  let lost = 0;
  const all = { file: path, reopen: true, maxSize: undefined, keep: 2, ...settings };
  const file = new LogFile(all, log, (lines) => {
    lost += lines;
  });
  t.after(() => {
    file.close();
    rmSync(folder, { recursive: true });
  });
  return {
    folder,
    path,
    file,
    said,
    lost: () => lost,
    write: (text: string) => file.write(Buffer.from(`${text}\n`)),
    read: (suffix = "") => readFileSync(path + suffix, "utf8"),
    check: () => t.mock.timers.tick(1000),
  };
}

test("a file that is moved or removed is made again, with mode 0640, by a look or by a signal", (t) => {
  const log = open(t);
  log.write("one");
  assert.equal(statSync(log.path).mode & 0o777, 0o640 & ~process.umask());
  renameSync(log.path, `${log.path}.old`);
  log.write("two");
  log.check();
  log.write("three");
  assert.deepEqual([log.read(".old"), log.read()], ["one\ntwo\n", "three\n"]);
  rmSync(log.path);
  log.file.reopen();
  log.write("four");
  assert.equal(log.read(), "four\n");
  assert.deepEqual([log.lost(), log.said], [0, []]);
});

test("with reopen: false only the signal opens it again", (t) => {
  const log = open(t, { reopen: false });
  renameSync(log.path, `${log.path}.old`);
  log.check();
  log.write("one");
  assert.ok(!existsSync(log.path));
  log.file.reopen();
  log.write("two");
  assert.deepEqual([log.read(".old"), log.read()], ["one\n", "two\n"]);
});

test("rotation keeps the newest files, and none is larger than the limit", (t) => {
  const log = open(t, { maxSize: 10 });
  for (const word of ["a", "b", "c", "d", "e", "f", "g"]) log.write(word.repeat(4));
  assert.deepEqual([log.read(), log.read(".1"), log.read(".2")], ["gggg\n", "eeee\nffff\n", "cccc\ndddd\n"]);
  assert.ok(!existsSync(`${log.path}.3`));
});

test("a line that is longer than the limit gets a file of its own, and none stays empty", (t) => {
  const log = open(t, { maxSize: 5 });
  log.write("a long line");
  log.write("b");
  assert.deepEqual([log.read(), log.read(".1")], ["b\n", "a long line\n"]);
  assert.ok(!existsSync(`${log.path}.2`));
});

test("processes share a file: no line overwrites another, and one rotation is enough", (t) => {
  const log = open(t, { maxSize: 10 });
  log.write("a");
  writeFileSync(log.path, "other\n", { flag: "a" });
  log.write("b");
  assert.equal(log.read(), "a\nother\nb\n");
  // The other process rotates it.
  renameSync(log.path, `${log.path}.1`);
  writeFileSync(log.path, "c\n");
  log.write("d".repeat(8));
  assert.deepEqual([log.read(), log.read(".1")], ["c\ndddddddd\n", "a\nother\nb\n"]);
  assert.ok(!existsSync(`${log.path}.2`));
});

test("a line that was cut by a full disk ends before the next one, but no file begins with an empty line", (t) => {
  const log = open(t);
  log.write("one");
  const { writeSync } = fs;
  let isFull = false;
  const cut = (fd: number, bytes: Uint8Array): number => {
    if (isFull) throw Object.assign(new Error("no space left"), { code: "ENOSPC" });
    isFull = true;
    return writeSync(fd, bytes.subarray(0, 2));
  };
  const fill = (): void => {
    isFull = false;
    const mocked = t.mock.method(fs, "writeSync", cut as typeof writeSync);
    syncBuiltinESMExports();
    log.write("two");
    mocked.mock.restore();
    syncBuiltinESMExports();
  };
  fill();
  log.write("three");
  assert.equal(log.read(), "one\ntw\nthree\n");
  fill();
  renameSync(log.path, `${log.path}.old`);
  log.check();
  log.write("four");
  assert.deepEqual([log.read(), log.lost()], ["four\n", 2]);
});

test("rotation with keep: 0 leaves the open file alone, and one that cannot be rotated grows", (t) => {
  const log = open(t, { maxSize: 10, keep: 0 });
  for (const word of ["a", "b", "c"]) log.write(word.repeat(4));
  assert.equal(log.read(), "cccc\n");
  const stuck = open(t, { maxSize: 5, keep: 1 });
  mkdirSync(`${stuck.path}.1`);
  for (const word of ["a", "b", "c"]) stuck.write(word.repeat(4));
  assert.equal(stuck.read(), "aaaa\nbbbb\ncccc\n");
  assert.match(stuck.said.join(""), /^\S+\twarn\tgateway cannot rotate the access log .*access\.log\.1.*\n$/);
  assert.equal(stuck.lost(), 0);
  rmSync(`${stuck.path}.1`, { recursive: true });
  stuck.check();
  stuck.write("dddd");
  assert.deepEqual([stuck.read(), stuck.read(".1")], ["dddd\n", "aaaa\nbbbb\ncccc\n"]);
});

test("a missing folder is said once, lines are counted, and it is tried again", (t) => {
  const log = open(t, {}, "logs/access.log");
  log.write("one\ntwo");
  log.check();
  assert.equal(log.lost(), 2);
  assert.match(log.said.join(""), /^\S+\terror\tgateway cannot write the access log; .*it does not exist.*\n$/);
  // Another reason, and another line.
  mkdirSync(log.path, { recursive: true });
  log.check();
  log.write("three");
  assert.match(log.said[1] ?? "", /cannot write the access log; .*it is a folder/);
  rmSync(log.path, { recursive: true });
  log.check();
  log.write("four");
  assert.equal(log.read(), "four\n");
  assert.match(log.said[2] ?? "", /the access log is written again .*dropped=3/);
});

test("only regular files are accepted: a pipe without a reader is refused", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "tracegate-log-file-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  for (const file of [pipe, "/dev/null", folder]) {
    const log = open(t, { file });
    log.write("one");
    assert.equal(log.lost(), 1, file);
    assert.match(log.said.join(""), /cannot write the access log/);
  }
});
