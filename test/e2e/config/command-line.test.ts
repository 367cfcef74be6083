import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, suite, test } from "node:test";
import { invokeProgram } from "../../../src/cli/fixtures/invoke.ts";
import type { CheckReport } from "../../../src/config/check.ts";
import { tracegate } from "../../../src/main/commands.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { TRACEGATE } from "../../helpers/programs.ts";

const GOOD = "binds: [{port: 0, listeners: [{routes: [{name: r, policies: {directResponse: {status: 200}}}]}]}]\n";
const BAD = "binds:\n  - port: 80800\n    listners: []\n";

interface Outcome {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

async function run(args: readonly string[], input = ""): Promise<Outcome> {
  const child = spawn(TRACEGATE, args, { stdio: ["pipe", "pipe", "pipe"] });
  child.stdin.end(input);
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { code: child.exitCode, out, err };
}

/** In this process: what the program does with the results is the same for all of them. */
async function check(args: readonly string[]): Promise<Outcome> {
  const { code, stdout, stderr } = await invokeProgram(tracegate, ["check", ...args]);
  return { code, out: stdout, err: stderr };
}

suite("tracegate check and --validate-only", { concurrency: 2 }, () => {
  let folder: string;
  let good: string;
  let bad: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "tracegate-check-"));
    good = join(folder, "good.yaml");
    bad = join(folder, "bad.yaml");
    await writeFile(good, GOOD);
    await writeFile(bad, BAD);
  });
  after(() => rm(folder, { recursive: true }));

  test("a valid file: the number of its objects, exit code 0", async () => {
    const { code, out } = await check(["-f", good]);
    assert.deepEqual([code, out], [0, "valid: 1 bind, 1 listener, 1 route, 0 backends\n"]);
  });

  test("TCP routes and their backends are counted too", async () => {
    const file = join(folder, "tcp.yaml");
    await writeFile(
      file,
      "gateways: {default: {port: 0, protocol: TCP}}\ntcpRoutes: [{backends: [{host: 127.0.0.1:1}]}]\n",
    );
    const { code, out } = await check(["-f", file]);
    assert.deepEqual([code, out], [0, "valid: 1 bind, 1 listener, 0 routes, 1 TCP route, 1 backend\n"]);
  });

  test("one line names the settings that are read only at the start", async () => {
    const file = join(folder, "settings.yaml");
    const config = { adminAddr: "127.0.0.1:1", logging: { level: "debug" }, customFunctions: "f(a) { a }" };
    await writeFile(file, JSON.stringify({ config, binds: [{ port: 0, listeners: [{ routes: [] }] }] }));
    const { code, out } = await check(["-f", file]);
    const note = "note: read only at startup, so a change needs a restart: config.adminAddr, config.logging.level\n";
    assert.deepEqual([code, out], [0, `valid: 1 bind, 1 listener, 0 routes, 0 backends\n${note}`]);
    const { diagnostics, startOnly } = JSON.parse((await check(["--json", "-f", file])).out) as CheckReport;
    assert.deepEqual([diagnostics, startOnly], [[], ["config.adminAddr", "config.logging.level"]]);
  });

  test("an invalid file: every problem with its position, exit code 1", async () => {
    const { code, out } = await check(["-f", bad]);
    assert.equal(code, 1);
    assert.equal(
      out,
      `${bad}:2:11: error: binds[0].port: too large; expected at most 65535
    - port: 80800
            ^

${bad}:3:5: error: binds[0].listners: unknown field; did you mean "listeners"?
      listners: []
      ^
2 problems
`,
    );
  });

  test("--json: the same as JSON", async () => {
    const [valid, invalid] = await Promise.all([check(["-f", good, "--json"]), check(["-f", bad, "--json"])]);
    assert.deepEqual(JSON.parse(valid.out), {
      ok: true,
      diagnostics: [],
      summary: { binds: 1, listeners: 1, routes: 1, tcpRoutes: 0, backends: 0 },
    });
    assert.equal(invalid.code, 1);
    const report = JSON.parse(invalid.out) as { ok: boolean; diagnostics: { path: string }[] };
    assert.equal(report.ok, false);
    assert.deepEqual(
      report.diagnostics.map(({ path }) => path),
      ["binds[0].port", "binds[0].listners"],
    );
  });

  test("- is standard input", async () => {
    const [valid, invalid] = await Promise.all([run(["check", "-f", "-"], GOOD), run(["check", "-f", "-"], BAD)]);
    assert.deepEqual([valid.code, invalid.code], [0, 1]);
    assert.match(invalid.out, /^standard input:2:11: error: /);
  });

  test("--validate-only of a file and of text", async () => {
    const [file, inline, wrong] = await Promise.all([
      run(["-f", good, "--validate-only"]),
      run(["-c", GOOD, "--validate-only"]),
      run(["-c", BAD, "--validate-only"]),
    ]);
    for (const { code, out, err } of [file, inline])
      assert.deepEqual([code, out], [0, "Configuration is valid!\n"], err);
    assert.deepEqual([wrong.code, wrong.out], [1, ""]);
    assert.match(wrong.err, /^--config:2:11: error: binds\[0\]\.port: too large/m);
  });

  test("an unreadable file is reported with the reason, exit code 1", async () => {
    const binary = join(folder, "binary.yaml");
    await writeFile(binary, Buffer.from([0x89, 0x50, 0xff, 0xfe, 0x00]));
    const outcomes = await Promise.all([
      check(["-f", join(folder, "nowhere.yaml")]),
      check(["-f", binary]),
      run(["-f", join(folder, "nowhere.yaml")]),
    ]);
    for (const { code } of outcomes) assert.equal(code, 1);
    const [absent, bytes, started] = outcomes;
    assert.match(absent?.out ?? "", /nowhere\.yaml: error: cannot read the file: it does not exist/);
    assert.match(bytes?.out ?? "", /error: cannot read the file: it is not UTF-8 text/);
    assert.match(started?.err ?? "", /cannot read the file: it does not exist/);
  });
});

test("the admin address at the top of the file, and from the environment, which wins", async () => {
  const config = (admin: string): string =>
    `adminAddr: ${admin}\nconfig: {statsAddr: "off", readinessAddr: "off", workerThreads: 1}\n${GOOD}`;
  await using top = await TestGateway.start(config("127.0.0.1:0"));
  assert.equal((await fetch(`${top.url("admin")}/config/status`)).status, 200);
  await using env = await TestGateway.start(config('"off"'), { env: { ADMIN_ADDR: "127.0.0.1:0" } });
  assert.equal((await fetch(`${env.url("admin")}/config/status`)).status, 200);
});

test("text on the command line runs", async () => {
  const config = `config: {adminAddr: "off", statsAddr: "off", readinessAddr: "off", workerThreads: 1}
binds: [{port: 0, listeners: [{routes: [{policies: {directResponse: {status: 200, body: inline}}}]}]}]`;
  const child = spawn(TRACEGATE, ["-c", config], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, LOG_FORMAT: "json" },
  });
  try {
    let log = "";
    for await (const part of child.stdout) {
      log += String(part);
      if (log.includes('"ready"')) break;
    }
    const port = /"port":(\d+)/.exec(log)?.[1];
    assert.equal(await (await fetch(`http://127.0.0.1:${port}/`)).text(), "inline");
  } finally {
    child.kill("SIGKILL");
  }
});
