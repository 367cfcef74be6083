/** The published package, as a user gets it: packed, installed elsewhere, started from its bin folder. */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { appRoot } from "../../src/base/app-root.ts";

const execute = promisify(execFile);
/** The pinned Node.js comes first, as a user of the package would put a recent one first. */
const PATH = `${dirname(process.execPath)}:${process.env.PATH}`;
const { version } = JSON.parse(readFileSync(`${appRoot}package.json`, "utf8"));
const env = { ...process.env, PATH, npm_config_update_notifier: "false" };

let folder = "";
let installed = "";

/** Runs a program to its end; rejects with its output when it fails or takes longer than two minutes. */
async function run(program: string, args: readonly string[], cwd: string): Promise<string> {
  const { stdout } = await execute(program, args, { cwd, env, timeout: 120_000 });
  return stdout;
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "tracegate-package-"));
  await run("npm", ["pack", "--silent", "--pack-destination", folder], appRoot);
  const [tarball = ""] = (await readdir(folder)).filter((name) => name.endsWith(".tgz"));
  const app = join(folder, "app");
  await mkdir(app);
  await writeFile(join(app, "package.json"), '{"private": true}');
  await run("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", join(folder, tarball)], app);
  installed = join(app, "node_modules", "tracegate");
});

after(() => rm(folder, { recursive: true, force: true }));

test("the package carries what it runs on and nothing of the checkout", async () => {
  const names = (await readdir(installed)).sort();
  for (const name of ["LICENSE", "README.md", "bin", "dist", "examples", "package.json", "schema"])
    assert.ok(names.includes(name), `${name} is missing from ${names.join(", ")}`);
  for (const name of ["src", "test", "scripts", "bench"]) assert.ok(!names.includes(name), `${name} is in the package`);
  const compiled = await readdir(join(installed, "dist"), { recursive: true });
  assert.deepEqual(
    compiled.filter((name) => name.includes(".test.")),
    [],
  );
});

test("both programs start through the links that npm makes, from any folder", async () => {
  const bin = join(installed, "..", ".bin");
  assert.match(await run(join(bin, "tracegate"), ["-V"], tmpdir()), /\d+\.\d+\.\d+/);
  assert.equal(JSON.parse(await run(join(bin, "tracegate"), ["--version"], tmpdir())).version, version);
  assert.equal(JSON.parse(await run(join(bin, "tgctl"), ["version"], tmpdir())).version, version);
});

test("a link to the launcher finds the package", async () => {
  const link = join(folder, "tg");
  await symlink(join(installed, "bin", "tracegate"), link);
  assert.match(await run(link, ["-V"], tmpdir()), /\d+\.\d+\.\d+/);
});

test("an older Node.js gets told what to do", async () => {
  const old = join(folder, "old");
  await mkdir(old);
  await writeFile(join(old, "node"), "#!/bin/sh\necho v20.1.0\n", { mode: 0o755 });
  const failure = await execute(join(installed, "bin", "tracegate"), ["-V"], {
    env: { PATH: `${old}:/usr/bin:/bin` },
  }).then(
    () => assert.fail("it started"),
    (error: { code: number; stderr: string }) => error,
  );
  assert.equal(failure.code, 1);
  assert.match(failure.stderr, /tracegate: Node\.js 24 or newer is needed; found v20\.1\.0 at .*old\/node/);
  assert.match(failure.stderr, /Install Node\.js 24/);
});

test("the installed gateway carries a request to a backend", async (t) => {
  const upstream = createServer((request, response) => response.end(`from upstream: ${request.url}`));
  await new Promise<void>((listening) => upstream.listen(0, "127.0.0.1", listening));
  t.after(() => upstream.close());
  const port = await freePort();
  const config = join(folder, "gateway.yaml");
  await writeFile(
    config,
    `config: {adminAddr: "off", statsAddr: "off", readinessAddr: "off", workerThreads: 1}
binds:
  - port: ${port}
    listeners:
      - protocol: HTTP
        routes:
          - name: all
            backends:
              - host: 127.0.0.1:${(upstream.address() as AddressInfo).port}
`,
  );
  const gateway = spawn(join(installed, "bin", "tracegate"), ["-f", config], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const collect = (chunk: Buffer) => {
    output += chunk.toString();
  };
  gateway.stdout.on("data", collect);
  gateway.stderr.on("data", collect);
  const ended = new Promise<number | null>((resolve) => gateway.on("close", resolve));
  t.after(async () => {
    gateway.kill("SIGKILL");
    await ended;
  });
  const failed = ended.then((code) => Promise.reject(new Error(`the gateway ended with ${code}: ${output}`)));
  failed.catch(() => undefined);
  const answer = await Promise.race([failed, firstAnswer(`http://127.0.0.1:${port}/hello`)]);
  assert.equal(answer, "from upstream: /hello");
  gateway.kill("SIGTERM");
  assert.equal(await ended, 0, output);
});

/** A port that nobody listens on now. */
async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((listening) => probe.listen(0, "127.0.0.1", listening));
  const { port } = probe.address() as AddressInfo;
  await new Promise((closed) => probe.close(closed));
  return port;
}

/** Body of the first response; asks again while nobody listens, for at most 20 s. */
async function firstAnswer(url: string): Promise<string> {
  const end = Date.now() + 20_000;
  for (;;) {
    try {
      return await (await fetch(url, { headers: { connection: "close" } })).text();
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((again) => setTimeout(again, 50));
    }
  }
}
