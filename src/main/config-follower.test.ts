import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { LogOutput } from "../base/log.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import type { ConfigSource } from "../config/load.ts";
import { loadConfigAside } from "../config/load-thread.ts";
import type { Impact } from "../impact/impact.ts";
import { collectGarbage } from "../net/node-internals.ts";
import { ANYWHERE } from "../net/testing/egress.ts";
import { ResourceStore } from "../translation/resources/store.ts";
import { WorkersDied } from "../worker/supervisor.ts";
import { ConfigFollower } from "./config-follower.ts";

/** A follower of a file with workers that reject what `reject` throws at; time passes only by `pass`. */
async function follower(t: TestContext, reject: () => void, text = "binds: []\n") {
  const folder = mkdtempSync(join(tmpdir(), "tracegate-follower-"));
  const path = join(folder, "gateway.yaml");
  writeFileSync(path, text);
  t.after(() => rmSync(folder, { recursive: true }));
  return await follow(t, { kind: "files", paths: [path] }, reject);
}

/** The same with files that the test brings. */
async function follow(t: TestContext, source: ConfigSource, reject: () => void = () => {}, strict = false) {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const start = await loadConfigAside(source, {});
  assert.ok(start.ok);
  const lines: string[] = [];
  const impacts: Impact[] = [];
  let attempts = 0;
  let rejecting = false;
  const host = {
    apply: async (): Promise<void> => {
      attempts++;
      if (rejecting) reject();
    },
    impactOf: async (): Promise<Impact> => impacts.shift() ?? assert.fail("nothing asks for an impact"),
    applied: (): void => {},
    attempted: (): void => {},
  };
  const log = new LogOutput(parseLogFilter("info"), "text", (line) => lines.push(line)).logger("gateway");
  const made = new ConfigFollower(source, {}, new ResourceStore(ANYWHERE), start, host, log, strict);
  await made.begin();
  t.after(() => made.close());
  return {
    follower: made,
    impacts,
    start: new WeakRef(start.configuration),
    errors: () => lines.filter((line) => line.includes("Failed to reload")).length,
    attempts: () => attempts,
    setRejecting: (value: boolean) => {
      rejecting = value;
    },
    /** Advances the clock, then waits for everything that this triggers. */
    pass: async (milliseconds: number): Promise<void> => {
      t.mock.timers.tick(milliseconds);
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

test("the configuration at startup is released when another one is in effect", async (t: TestContext) => {
  const f = await follower(t, () => {});
  assert.ok(f.start.deref() !== undefined);
  assert.equal(await f.follower.reload(), true);
  await f.pass(0);
  collectGarbage();
  assert.equal(f.start.deref(), undefined);
});

test("the status counts the warnings about the configuration in effect, and lists the first 50", async (t: TestContext) => {
  const route = "  - policies: { apiKey: { keys: [{ key: abc }] } }\n    backends: [{ host: '127.0.0.1:1' }]\n";
  const f = await follower(t, () => {}, `gateways: { default: { port: 0 } }\nroutes:\n${route.repeat(60)}`);
  const { count = 0, first = [] } = f.follower.status.warnings ?? {};
  const lenient = first.filter(({ lint }) => lint === "lenient-authentication");
  assert.deepEqual([count >= 60, first.length], [true, 50]);
  assert.match(lenient[0]?.file ?? "", /gateway\.yaml$/);
  assert.deepEqual([lenient[0]?.line, lenient[0]?.path], [3, "routes[0].policies.apiKey"]);
  assert.match(lenient[0]?.message ?? "", /requests without credentials pass/);
  assert.match(lenient[0]?.remedy ?? "", /mode: strict/);
  assert.equal(
    first.some((each) => "source" in each),
    false,
    "lines of the file are not part of the status",
  );
});

test("strict: a changed file with warnings does not take effect", async (t: TestContext) => {
  const folder = mkdtempSync(join(tmpdir(), "tracegate-follower-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "gateway.yaml");
  writeFileSync(path, "binds: []\n");
  const { follower } = await follow(t, { kind: "files", paths: [path] }, undefined, true);
  const route = (mode: string): string =>
    `gateways: { default: { port: 0 } }\nroutes: [{ policies: { apiKey: { ${mode}keys: [{ key: abc }] } }, backends: [{ host: "127.0.0.1:1" }] }]\n`;
  writeFileSync(path, route(""));
  assert.equal(await follower.reload(), false);
  const { generation, lastError } = follower.status;
  assert.equal(generation, 1);
  assert.match(lastError?.message ?? "", /error: .*requests without credentials pass.*\[lenient-authentication\]/);
  writeFileSync(path, route("mode: strict, "));
  assert.equal(await follower.reload(), true);
});

test("a configuration rejected for an outside reason is retried after 1, 2, 4 … 30 s, and logged once", async (t: TestContext) => {
  const f = await follower(t, () => {
    throw new Error("no port");
  });
  f.setRejecting(true);
  assert.equal(await f.follower.reload(), false);
  for (const pause of [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) {
    const before = f.attempts();
    await f.pass(pause - 1);
    assert.equal(f.attempts(), before, `before ${pause}`);
    assert.ok(f.follower.status.nextRetryAt !== null);
    await f.pass(1);
    assert.equal(f.attempts(), before + 1, `after ${pause}`);
  }
  assert.equal(f.errors(), 1);
  assert.equal(f.follower.status.lastError?.message, "no port");
  assert.equal(f.follower.status.synchronized, false);

  f.setRejecting(false);
  await f.pass(30_000);
  const { generation, synchronized, lastError, nextRetryAt } = f.follower.status;
  assert.deepEqual([generation, synchronized, lastError, nextRetryAt], [2, true, null, null]);
  const done = f.attempts();
  await f.pass(60_000);
  assert.equal(f.attempts(), done);
});

test("a configuration that kills workers is retried three times, then only on request", async (t: TestContext) => {
  const f = await follower(t, () => {
    throw new WorkersDied("they died");
  });
  f.setRejecting(true);
  await f.follower.reload();
  for (const pause of [1000, 2000, 4000]) await f.pass(pause);
  assert.equal(f.follower.status.nextRetryAt, null);
  const tried = f.attempts();
  await f.pass(600_000);
  assert.equal(f.attempts(), tried);
  f.setRejecting(false);
  assert.equal(await f.follower.reload(), true);
  assert.equal(f.follower.status.synchronized, true);
});

function refusing(refused: number, requests: number): Impact {
  const none = { requests: 0, samples: 0 };
  const [granted, maybeGranted, maybeRefused, movedRoute, movedBackend, changedOnTheWay, unknown] = Array(7).fill(none);
  const unchanged = { requests: requests - refused, samples: 1 };
  const others = { granted, maybeGranted, maybeRefused, movedRoute, movedBackend, changedOnTheWay, unknown, unchanged };
  return { requests, samples: 2, classes: { ...others, refused: { requests: refused, samples: 1 } }, changes: [] };
}

test("a configuration that would refuse too many requests is logged once, whatever their number, and applied when they are fewer", async (t: TestContext) => {
  const f = await follower(t, () => {}, "config: {reload: {impact: {maxRefused: 2.5%}}}\nbinds: []\n");
  f.impacts.push(refusing(26, 1000), refusing(30, 1000), refusing(25, 1000));
  assert.equal(await f.follower.reload(), false);
  const first = f.follower.status.lastError?.message ?? "";
  assert.match(
    first,
    /^it would refuse 2\.6% of the sampled requests, and config\.reload\.impact\.maxRefused allows 2\.5%;/,
  );
  await f.pass(1000);
  assert.match(f.follower.status.lastError?.message ?? "", /1,000 requests/);
  assert.equal(f.impacts.length, 1);
  assert.equal(f.errors(), 1);
  await f.pass(2000);
  assert.equal(f.follower.status.synchronized, true);
  assert.equal(f.follower.status.generation, 2);
});

test("an impact that cannot be found keeps the old configuration", async (t: TestContext) => {
  const f = await follower(t, () => {}, "config: {reload: {impact: {maxRefused: 1%}}}\nbinds: []\n");
  assert.equal(await f.follower.reload(), false);
  assert.match(f.follower.status.lastError?.message ?? "", /nothing asks for an impact/);
  assert.ok(f.follower.status.nextRetryAt !== null);
});

test("a folder whose link moves to another version is one reload, and what was refused names its file", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "tracegate-folder-"));
  // As Kubernetes mounts a ConfigMap.
  const version = (name: string, files: Readonly<Record<string, string>>): void => {
    mkdirSync(join(folder, name));
    for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, name, file), text);
    symlinkSync(name, join(folder, "..next"));
    renameSync(join(folder, "..next"), join(folder, "..data"));
  };
  version("..1", { "a.yaml": "binds: []\n", "b.yaml": "backends: []\n" });
  for (const file of ["a.yaml", "b.yaml"]) symlinkSync(join("..data", file), join(folder, file));
  const followed = await follow(t, { kind: "files", paths: [folder] });
  version("..2", { "a.yaml": "binds: [ ]\n", "b.yaml": "backends: [ ]\n" });
  symlinkSync("..data/c.yaml", join(folder, "c.yaml"));
  writeFileSync(join(folder, "..2", "c.yaml"), "routes: []\n");
  await followed.pass(2000);
  await followed.pass(2000);
  assert.deepEqual([followed.attempts(), followed.follower.status.synchronized], [2, true]);
  version("..3", { "a.yaml": "binds: [ ]\n", "b.yaml": "backends: 1\n", "c.yaml": "routes: []\n" });
  await followed.pass(2000);
  await followed.pass(2000);
  assert.equal(followed.attempts(), 2);
  assert.match(followed.follower.status.lastError?.message ?? "", /b\.yaml:1:11: error: backends: /);
  const difference = await followed.follower.difference(new Set());
  assert.deepEqual("hunks" in difference && difference.hunks.map(({ file }) => file), [join(folder, "b.yaml")]);
  version("..4", { "a.yaml": "binds: [ ]\n", "b.yaml": "backends: []\n", "c.yaml": "routes: []\n" });
  await followed.pass(2000);
  await followed.pass(2000);
  assert.deepEqual([followed.attempts(), followed.follower.status.lastError], [3, null]);
  rmSync(folder, { recursive: true });
});
