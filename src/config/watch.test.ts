import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, suite, test } from "node:test";
import { type FileWatch, isReadOnce, watchFiles } from "./watch.ts";

suite("watchFiles", () => {
  let folder: string;
  let file: string;
  let watcher: FileWatch | undefined;
  let noticed: () => void = () => {};

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "tracegate-watch-"));
    file = join(folder, "gateway.yaml");
    writeFileSync(file, "one");
  });
  afterEach(() => {
    watcher?.close();
    rmSync(folder, { recursive: true });
  });

  function start(...files: readonly string[]): void {
    watcher = watchFiles(files, () => noticed());
  }

  /** Resolves once the change has been noticed; the test's own time limit bounds the wait. */
  function notice(change: () => void): Promise<void> {
    // Neither the watch nor its timers keep the process alive.
    const alive = setInterval(() => {}, 1000);
    return new Promise<void>((resolve) => {
      noticed = resolve;
      change();
    }).finally(() => clearInterval(alive));
  }

  test("written in place", async () => {
    start(file);
    await notice(() => writeFileSync(file, "two and more"));
  });

  test("replaced by a rename", async () => {
    start(file);
    writeFileSync(join(folder, "next"), "two");
    await notice(() => renameSync(join(folder, "next"), file));
  });

  test("removed and made again", async () => {
    start(file);
    rmSync(file);
    await notice(() => writeFileSync(file, "two"));
  });

  test("truncated, then written: the last content is noticed", async () => {
    start(file);
    await notice(() => {
      writeFileSync(file, "");
      writeFileSync(file, "whole");
    });
  });

  test("the folder that a symbolic link of a mounted ConfigMap points to is swapped", async () => {
    const mount = join(folder, "mount");
    mkdirSync(join(mount, "v1"), { recursive: true });
    mkdirSync(join(mount, "v2"));
    // The same size, perhaps within one tick of the clock: what counts is that it is another file.
    writeFileSync(join(mount, "v1", "gateway.yaml"), "one");
    writeFileSync(join(mount, "v2", "gateway.yaml"), "two");
    symlinkSync("v1", join(mount, "..data"));
    symlinkSync("..data/gateway.yaml", join(mount, "gateway.yaml"));
    start(join(mount, "gateway.yaml"));
    await notice(() => {
      symlinkSync("v2", join(mount, "..tmp"));
      renameSync(join(mount, "..tmp"), join(mount, "..data"));
    });
  });

  test("while a file stays away, changes of the others are noticed", async () => {
    const other = join(folder, "key.pem");
    writeFileSync(other, "key");
    start(file, other);
    rmSync(other);
    await notice(() => writeFileSync(file, "names another key"));
  });

  test("written just before other files are watched too", async () => {
    start(file);
    await notice(() => {
      writeFileSync(file, "two and more");
      watcher?.update([file, join(folder, "key.pem")]);
    });
  });

  test("any of several files, and one in a folder that does not exist yet", async () => {
    const other = join(folder, "certificates", "key.pem");
    start(file, other);
    await notice(() => {
      mkdirSync(join(folder, "certificates"));
      writeFileSync(other, "key");
    });
  });
});

test("streams are read once", () => {
  for (const path of ["-", "/dev/stdin", "/dev/fd/3", "/proc/self/fd/0"]) assert.equal(isReadOnce(path), true, path);
  for (const path of ["gateway.yaml", "/dev/shm/gateway.yaml", "./-"]) assert.equal(isReadOnce(path), false, path);
});
