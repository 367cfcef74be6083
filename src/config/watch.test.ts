import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  watch as watchFolder,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, suite, test } from "node:test";
import { ABSENT, type Digests, UNKNOWN } from "./parse/inputs.ts";
import { FileWatch, pauseAfter, pauseOnceNoticed } from "./watch.ts";

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

suite("FileWatch", () => {
  let folder: string;
  let file: string;
  let watch: FileWatch;
  let noticed: () => void = () => {};

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "tracegate-watch-"));
    file = join(folder, "gateway.yaml");
    writeFileSync(file, "one");
    watch = new FileWatch(() => noticed());
  });
  afterEach(() => {
    watch.close();
    rmSync(folder, { recursive: true });
  });

  /** Follows files that were read a moment ago. */
  function start(...files: readonly string[]): void {
    watch.follow(new Map(files.map((path) => [path, ""])));
    watch.follow(watch.now());
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

  test("a file that appears in a folder, or goes from it", async () => {
    const other = join(folder, "other.yaml");
    start(`${folder}/`);
    await notice(() => writeFileSync(other, "two"));
    start(`${folder}/`);
    await notice(() => rmSync(other));
  });

  test("removed and made again", async () => {
    start(file);
    rmSync(file);
    await notice(() => writeFileSync(file, "two"));
  });

  test("truncated, then written: the last content is detected", async () => {
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

  test("while a file is missing, changes of the others are detected", async () => {
    const other = join(folder, "key.pem");
    writeFileSync(other, "key");
    start(file, other);
    rmSync(other);
    await notice(() => writeFileSync(file, "names another key"));
  });

  test("written after it was read and before it is followed", async () => {
    await notice(() => watch.follow(new Map([[file, digest("what was read")]])));
  });

  test("a change is reported once until the files are read again", async () => {
    let notices = 0;
    const first = new Map([[file, digest("what was read")]]);
    await notice(() => watch.follow(first));
    noticed = () => notices++;
    writeFileSync(file, "two and more");
    // Others notice the same change, one after the other, which takes longer.
    const alive = setInterval(() => {}, 1000);
    for (let i = 0; i < 3; i++) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const other = new FileWatch(resolve);
      other.follow(first);
      await promise;
      other.close();
    }
    clearInterval(alive);
    assert.equal(notices, 0);
    await notice(() => watch.follow(first));
  });

  test("written with other times and the same content", async () => {
    start(file);
    const other = join(folder, "other");
    writeFileSync(other, "other");
    let changes = 0;
    noticed = () => changes++;
    utimesSync(file, 1, 1);
    writeFileSync(file, "one");
    assert.equal(watch.differs(new Map([[file, digest("one")]])), false);
    assert.equal(changes, 0);
  });

  test("any of several files, and one in a folder that does not exist yet", async () => {
    const other = join(folder, "certificates", "key.pem");
    start(file, other);
    await notice(() => {
      mkdirSync(join(folder, "certificates"));
      writeFileSync(other, "key");
    });
  });

  test("a change after the end is not reported", async () => {
    let notices = 0;
    const closed = new FileWatch(() => notices++);
    closed.follow(new Map([[file, digest("one")]]));
    closed.close();
    start(file);
    await notice(() => writeFileSync(file, "two and more"));
    assert.equal(notices, 0);
  });

  test("notifications of the system make it check earlier, each time", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    let notices = 0;
    noticed = () => notices++;
    for (const text of ["two", "three"]) {
      start(file);
      t.mock.timers.tick(0);
      const other = watchFolder(folder);
      writeFileSync(file, text);
      await once(other, "change");
      other.close();
      await new Promise(setImmediate);
      // Before the next regular check, and then until the content has not changed for a while.
      t.mock.timers.tick(140);
      t.mock.timers.tick(100);
    }
    assert.equal(notices, 2);
  });

  test("one that stays missing", async () => {
    start(file);
    await notice(() => rmSync(file));
    assert.deepEqual(watch.now(), new Map([[file, ABSENT]]));
  });

  test("a file that changes between two checks within one tick of the clock is read again", () => {
    const time = new Date();
    for (const text of ["one", "two", "six"]) {
      writeFileSync(file, text);
      utimesSync(file, time, time);
      assert.deepEqual(differences(text), [false, true]);
    }
  });

  test("a file of unknown content counts as different", () => {
    assert.equal(watch.differs(new Map([[file, UNKNOWN]])), true);
  });

  /** Whether the text, and another one, differ from what is in the file. */
  function differences(text: string): boolean[] {
    const of = (content: string): Digests => new Map([[file, digest(content)]]);
    return [watch.differs(of(text)), watch.differs(of(`${text}!`))];
  }
});

test("regular checks are rarer if each costs much, as with a thousand files", () => {
  assert.equal(pauseAfter(0.1), 250);
  assert.equal(pauseAfter(10), 2000);
});

test("many notifications, as from a folder of ACME, cause few checks", () => {
  assert.equal(pauseOnceNoticed(0.1, 5), 0);
  assert.equal(pauseOnceNoticed(10, 50), 150);
  assert.equal(pauseOnceNoticed(10, 1000), 0);
});
