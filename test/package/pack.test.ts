/** The published package, as a user gets it: packed, installed elsewhere, started from its bin folder. */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { Script } from "node:vm";
import { parse, parseAllDocuments } from "yaml";
import { installPackage } from "../../scripts/bundle/install.ts";
import { appRoot } from "../../src/base/app-root.ts";
import { inlineMore } from "../../src/base/inlining.ts";
import { freePort } from "../helpers/free-ports.ts";
import { GrpcServer } from "../helpers/grpc-server.ts";

const execute = promisify(execFile);
/** The pinned Node.js comes first, as a user of the package would put a recent one first. */
const PATH = `${dirname(process.execPath)}:${process.env.PATH}`;
const { version } = JSON.parse(readFileSync(`${appRoot}package.json`, "utf8"));
const env = { ...process.env, PATH, npm_config_update_notifier: "false" };

let folder = "";
/** The package's folder. A run of all tests has installed it already. */
let installed = process.env.TEST_PROGRAMS ?? "";

/** Runs a program to its end; rejects with its output when it fails or takes longer than two minutes. */
async function run(program: string, args: readonly string[], cwd: string): Promise<string> {
  const { stdout } = await execute(program, args, { cwd, env, timeout: 120_000 });
  return stdout;
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "tracegate-package-"));
  if (installed === "") installed = await installPackage(await mkdtemp(join(folder, "app-")));
});

after(() => rm(folder, { recursive: true, force: true }));

test("the package contains everything that it needs, with licenses, and nothing else of the checkout", async () => {
  const names = (await readdir(installed)).sort();
  for (const name of ["LICENSE", "README.md", "bin", "dist", "examples", "package.json", "schema"])
    assert.ok(names.includes(name), `${name} is missing from ${names.join(", ")}`);
  for (const name of ["src", "test", "scripts", "bench"]) assert.ok(!names.includes(name), `${name} is in the package`);
  const packages = (await readdir(join(installed, ".."))).filter((name) => !name.startsWith("."));
  assert.deepEqual(packages, ["tracegate"], "it needs no other package");
  const notices = await readFile(join(installed, "dist/THIRD-PARTY-NOTICES.txt"), "utf8");
  for (const name of ["zod", "yaml", "jose", "re2js", "react"]) assert.match(notices, new RegExp(`^${name} \\d`, "m"));
});

test("links of the pages in the package lead to files in it", async () => {
  const names = await readdir(installed, { recursive: true });
  const pages = names.filter((name) => name.endsWith(".md") && !name.startsWith("node_modules"));
  assert.ok(pages.includes("docs/configuration.md") && pages.length > 50);
  const broken: string[] = [];
  for (const page of pages)
    for (const [, target = ""] of (await readFile(join(installed, page), "utf8")).matchAll(
      /\]\(([^)#\s]+)(?:#[^)]*)?\)/g,
    ))
      if (!/^[a-z]+:/.test(target) && !existsSync(join(installed, dirname(page), target)))
        broken.push(`${page}: ${target}`);
  assert.deepEqual(broken, []);
});

test("tracegate init writes files that are complete, and overwrites none without --force", async () => {
  const program = join(installed, "bin/tracegate");
  const written: string[] = [];
  for (const kind of ["systemd", "compose", "kubernetes", "grafana", "argo-cd", "flux"]) {
    const to = join(folder, kind);
    const printed = await run(program, ["init", kind, "--to", to], folder);
    assert.match(printed, /\nNext:\n\n {2}/);
    const [, page = "nowhere"] = /^More: ([^#\n]+)/m.exec(printed) ?? [];
    assert.ok(existsSync(page), page);
    written.push(...Array.from(printed.matchAll(/^wrote (.*)$/gm), ([, path = ""]) => path));
  }
  const again = ["init", "systemd", "--to", join(folder, "systemd")];
  await assert.rejects(run(program, again, folder), /there already; --force overwrites/);
  await run(program, [...again, "--force"], folder);
  for (const path of written.filter((each) => /\.(ya?ml|json)$/.test(each)))
    for (const document of parseAllDocuments(await readFile(path, "utf8"))) assert.deepEqual(document.errors, [], path);
  const compose = parse(await readFile(join(folder, "compose/compose.yaml"), "utf8"));
  assert.equal(compose.services.tracegate.image.split(":")[1], version);
  await run(program, ["check", "--strict", "-f", join(folder, "compose/config/gateway.yaml")], folder);
});

test("V8 accepts the code that came with the bundles, so a start compiles nothing", async () => {
  inlineMore();
  const folder = join(installed, "dist/code");
  const cached = (await readdir(folder)).filter((name) => name.endsWith(".cache"));
  for (const name of ["main.cjs", "worker-worker.cjs", "config-load-worker.cjs", "cli-main.cjs"])
    assert.ok(cached.includes(`${name}.cache`), `${name} has no code`);
  for (const name of cached) {
    const source = await readFile(join(folder, name.replace(/\.cache$/, "")), "latin1");
    const script = new Script(source, { cachedData: await readFile(join(folder, name)) });
    assert.equal(script.cachedDataRejected, false, name);
  }
});

test("a worker's bundle contains no code that only configuration and tgctl need", async () => {
  const worker = await readFile(join(installed, "dist/code/worker-worker.cjs"), "latin1");
  const packages = new Set(
    Array.from(worker.matchAll(/^\/\/ node_modules\/((?:@[^/]+\/)?[^/]+)/gm), ([, name]) => name),
  );
  assert.ok(packages.has("re2js"), "the bundle names its packages");
  for (const name of ["zod", "yaml", "react", "ink", "pprof-format", "@grpc/grpc-js"])
    assert.ok(!packages.has(name), `${name} is in the worker's bundle`);
});

test("both programs start through the links that npm makes, from any folder", async () => {
  const bin = join(installed, "..", ".bin");
  assert.match(await run(join(bin, "tracegate"), ["-V"], tmpdir()), /\d+\.\d+\.\d+/);
  assert.equal(JSON.parse(await run(join(bin, "tracegate"), ["--version"], tmpdir())).version, version);
  assert.equal(JSON.parse(await run(join(bin, "tgctl"), ["version"], tmpdir())).version, version);
  assert.match(await run(join(bin, "tgctl"), ["--help"], tmpdir()), /^Usage:/m);
});

test("a link to the launcher finds the package", async () => {
  const link = join(folder, "tg");
  await symlink(join(installed, "bin", "tracegate"), link);
  assert.match(await run(link, ["-V"], tmpdir()), /\d+\.\d+\.\d+/);
});

test("an older Node.js prints what to do", async () => {
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

/** For example/policies/jwt-auth.yaml, valid until 2100. */
const TOKEN =
  "eyJhbGciOiJFZERTQSIsImtpZCI6ImRlbW8ifQ.eyJzdWIiOiJhbGljZSIsImlzcyI6Imh0dHBzOi8vaXNzdWVyLmV4YW1wbGUiLCJhdWQiOiJzaG9wIiwiZXhwIjo0MTAyNDQ0ODAwfQ.k72WSokRmbr0CCy89Y0e72F_eFC6h37OYN-TPlBhfhocLNSO7blCWdcSVR-Yf71F1Wnjrt-mmKOGIAMdA9huDw";

test("the installed gateway runs policies that load modules on demand, and traces requests", async (t) => {
  const upstream = createServer((request, response) => response.end(`from upstream: ${request.url}`));
  await new Promise<void>((listening) => upstream.listen(0, "127.0.0.1", listening));
  t.after(() => upstream.close());
  const backends = `backends: [{host: "127.0.0.1:${(upstream.address() as AddressInfo).port}"}]`;
  // An empty CheckResponse allows the request.
  const authorization = await GrpcServer.start({
    "/envoy.service.auth.v3.Authorization/Check": { unary: () => new Uint8Array() },
  });
  t.after(() => authorization.stop());
  const port = await freePort();
  const adminPort = await freePort();
  const config = join(folder, "gateway.yaml");
  await writeFile(
    config,
    `config: {adminAddr: "127.0.0.1:${adminPort}", statsAddr: "off", readinessAddr: "off", workerThreads: 1}
binds:
  - port: ${port}
    listeners:
      - protocol: HTTP
        routes:
          - name: all
            ${backends}
          - name: jwt
            matches: [{path: {pathPrefix: /jwt}}]
            policies:
              jwtAuth:
                mode: strict
                issuer: https://issuer.example
                audiences: [shop]
                jwks: '{"keys":[{"crv":"Ed25519","x":"fGbvJaGM29fj6TnL06lcHNfkaw517uRsSsQu9dVfoaM","kty":"OKP","kid":"demo"}]}'
            ${backends}
          - name: password
            matches: [{path: {pathPrefix: /password}}]
            policies:
              basicAuth: {htpasswd: "alice:$$2y$$05$$qcjfISV6ZtvAS52gEeaqz.tY4g0s1Uiapnj7QwjzPtmt746fSckcW"}
            ${backends}
          - name: asked
            matches: [{path: {pathPrefix: /asked}}]
            policies:
              extAuthz: {host: "127.0.0.1:${authorization.port}"}
            ${backends}
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
  const url = `http://127.0.0.1:${port}`;
  assert.equal(await Promise.race([failed, firstAnswer(`${url}/hello`)]), "from upstream: /hello");

  const status = async (path: string, authorization?: string) => {
    const response = await fetch(`${url}${path}`, authorization === undefined ? {} : { headers: { authorization } });
    return `${response.status} ${await response.text()}`;
  };
  assert.match(await status("/jwt"), /^401 /);
  assert.equal(await status("/jwt", `Bearer ${TOKEN}`), "200 from upstream: /jwt");
  assert.match(await status("/password", `Basic ${btoa("alice:guessed")}`), /^401 /);
  assert.equal(await status("/password", `Basic ${btoa("alice:wonderland")}`), "200 from upstream: /password");
  assert.equal(await status("/asked"), "200 from upstream: /asked");

  const ports = ["--proxy-admin-port", String(adminPort), "--port", String(port)];
  const args = ["proxy", "trace", "--local", "--raw", ...ports, "--", `${url}/traced`];
  const events = (await run(join(installed, "bin", "tgctl"), args, tmpdir())).trim().split("\n");
  assert.match(events.at(-1) ?? "", /"requestFinished"/);

  gateway.kill("SIGTERM");
  assert.equal(await ended, 0, output);
});

/** Body of the first response; repeats the request while nothing listens, for at most 20 s. */
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
