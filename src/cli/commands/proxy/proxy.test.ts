import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { serve } from "../../fixtures/admin.ts";
import { invoke } from "../../fixtures/invoke.ts";

test("log shows the filter, and sets the level of all or some modules", async (t) => {
  const admin = await serve(t, (request, response) => {
    const level = new URL(request.url ?? "", "http://x").searchParams.get("level") ?? "info";
    response.end(`current log level is ${level}\n`);
  });
  const log = (...more: string[]) =>
    invoke(["proxy", "log", "--local", "--proxy-admin-port", String(admin.port), ...more]);
  assert.equal((await log()).stdout, "current log level is info\n");
  assert.equal((await log("--level", "debug")).stdout, "current log level is debug\n");
  const set = await log("--set", "proxy=debug,request=off", "--set", "admin=trace");
  assert.equal(set.stdout, "current log level is proxy=debug,request=off,admin=trace\n");
  assert.deepEqual(JSON.parse((await log("--json")).stdout), { level: "info" });
  assert.deepEqual(
    admin.requests.map((line) => line.split("?")[0]),
    Array.from({ length: 4 }, () => "POST /logging"),
  );
});

test("log takes what POST /logging takes: levels of modules beside a level of all", async (t) => {
  const admin = await serve(t, (request, response) => {
    response.end(`current log level is ${new URL(request.url ?? "", "http://x").searchParams.get("level")}\n`);
  });
  const level = (filter: string) => invoke(["proxy", "log", "--local", "-p", String(admin.port), "--level", filter]);
  assert.equal((await level("info,request=off")).stdout, "current log level is info,request=off\n");
  const wrong = await level("info,request=loud");
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /"loud" is not a level; expected one of off, error/);
});

test("profile takes the admin port as -p and --port too", async (t) => {
  const admin = await serve(t, (_request, response) => response.end("profile"));
  const folder = mkdtempSync(join(tmpdir(), "tgctl-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const heap = (...port: string[]) =>
    invoke(["proxy", "profile", "heap", "--local", ...port, "-o", join(folder, "heap.pb.gz")]);
  for (const option of ["-p", "--port", "--proxy-admin-port"])
    assert.equal((await heap(option, String(admin.port))).code, 0, option);
  assert.equal((await heap("-p", "1", "--proxy-admin-port", "2")).code, 2);
});

test("log prints the reason of a rejected level", async (t) => {
  const admin = await serve(t, (_request, response) => response.writeHead(400).end("Invalid level provided: x\n"));
  const { code, stderr } = await invoke(["proxy", "log", "--local", "--proxy-admin-port", String(admin.port)]);
  assert.equal(code, 1);
  assert.equal(stderr, "Error: unexpected status code: 400\nWhy: Invalid level provided: x\n");
});

const STATUS = {
  generation: 3,
  appliedAt: "2026-02-03T04:05:06.000Z",
  loadedAt: "2026-02-03T04:05:07.000Z",
  lastError: null,
  synchronized: true,
  source: "gateway.yaml",
};

test("status shows every field, also those of a later proxy", async (t) => {
  const later = {
    ...STATUS,
    hash: "ab12",
    diskDiffers: false,
    restartRequired: ["config.adminAddr"],
    nextRetryAt: null,
  };
  const admin = await serve(t, (_request, response) => response.end(JSON.stringify(later)));
  const { code, stdout } = await invoke(["status", "--proxy-admin-port", String(admin.port)]);
  assert.equal(code, 0);
  assert.deepEqual(stdout.split("\n"), [
    "synchronized      yes",
    "generation        3",
    "source            gateway.yaml",
    "applied at        2026-02-03T04:05:06.000Z",
    "loaded at         2026-02-03T04:05:07.000Z",
    "hash              ab12",
    "disk differs      no",
    "restart required  config.adminAddr",
    "",
  ]);
  const json = await invoke(["proxy", "status", "-o", "json", "--proxy-admin-port", String(admin.port)]);
  assert.deepEqual(JSON.parse(json.stdout), later);
  assert.deepEqual(admin.requests, ["GET /config/status", "GET /config/status"]);
});

test("status fails when the newest configuration is not in effect, with the reason", async (t) => {
  const diagnostics = [
    { file: "gateway.yaml", line: 3, column: 11, path: "binds[0].port", message: "expected a number" },
  ];
  const lastError = { at: STATUS.loadedAt, message: "1 problem", diagnostics };
  const refused = { ...STATUS, lastError, synchronized: false };
  let state: object = refused;
  const admin = await serve(t, (_request, response) => response.end(JSON.stringify(state)));
  const status = (...more: string[]) => invoke(["status", "--proxy-admin-port", String(admin.port), ...more]);
  const { code, stdout, stderr } = await status();
  assert.equal(code, 1);
  assert.match(stdout, /^synchronized {2}no\n/);
  assert.match(stdout, /\n {2}1 problem\n {2}gateway\.yaml:3:11: binds\[0\]\.port: expected a number\n$/);
  assert.equal(stderr, "Error: the newest configuration is not in effect\nWhy: 1 problem\n");
  state = { ...STATUS, synchronized: false, diskDiffers: true };
  assert.match((await status()).stderr, /\nWhy: the files on disk differ from it\n$/);
  state = refused;
  const json = await status("--json");
  assert.equal(json.code, 1);
  assert.deepEqual(JSON.parse(json.stdout), refused);
});

test("TGCTL_ADMIN is the admin address; a port on the command line takes precedence", async (t) => {
  const admin = await serve(t, (_request, response) => response.end(JSON.stringify(STATUS)));
  const folder = mkdtempSync(join(tmpdir(), "tgctl-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "admin.sock");
  const socket = createServer((_request, response) => response.end("current log level is warn\n"));
  await new Promise<void>((resolve) => socket.listen(path, resolve));
  t.after(() => socket.close());
  for (const address of [
    `localhost:${admin.port}`,
    `http://localhost:${admin.port}`,
    `http://localhost:${admin.port}/`,
  ])
    assert.equal((await invoke(["status"], "", { TGCTL_ADMIN: address })).code, 0, address);
  const unix = { TGCTL_ADMIN: `unix:${path}` };
  assert.equal((await invoke(["log", "--local"], "", unix)).stdout, "current log level is warn\n");
  assert.equal((await invoke(["status", "--proxy-admin-port", String(admin.port)], "", unix)).code, 0);
  assert.equal(admin.requests.length, 4);
  for (const wrong of [
    "localhost",
    "unix:admin.sock",
    "https://localhost:1",
    "localhost:0",
    "a b:1",
    "localhost:99999",
  ]) {
    const { code, stderr } = await invoke(["status"], "", { TGCTL_ADMIN: wrong });
    assert.equal(code, 2, wrong);
    assert.ok(stderr.startsWith(`Error: TGCTL_ADMIN is not an admin address: "${wrong}"\nTry: `), stderr);
  }
  const remote = await invoke(["trace", "--port", "3000", "--", "http://a/"], "", { TGCTL_ADMIN: "10.0.0.1:15000" });
  assert.match(
    remote.stderr,
    /^Error: a request URL needs a proxy on this machine, but TGCTL_ADMIN is 10\.0\.0\.1:15000\n/,
  );
});

test("a port of another server is reported as such", async (t) => {
  const listener = await serve(t, (_request, response) => response.writeHead(404).end("route not found"));
  for (const words of ["log", "config all", "trace --raw"]) {
    const line = ["proxy", ...words.split(" "), "--local", "--proxy-admin-port", String(listener.port)];
    const { code, stderr } = await invoke(line);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /404.*\nTry: this address is not an admin server; give its port .* --proxy-admin-port or TGCTL_ADMIN\n$/s,
      words,
    );
  }
});

test("profiles are written to the file; profile alone means profile cpu", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "tgctl-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const admin = await serve(t, (_request, response) => response.end(Buffer.from([31, 139, 0, 255])));
  const file = join(folder, "p.pb.gz");
  const profile = (...words: string[]) =>
    invoke(["proxy", "profile", ...words, "--local", "--proxy-admin-port", String(admin.port), "-o", file]);
  for (const [words, kind] of [
    [["cpu", "--seconds", "2"], "cpu"],
    [["--seconds", "300"], "cpu"],
    [["heap"], "heap"],
  ] as const) {
    assert.equal((await profile(...words)).stdout, `Wrote ${kind} profile to ${file}\n`);
    assert.deepEqual([...readFileSync(file)], [31, 139, 0, 255]);
  }
  assert.deepEqual(admin.requests, [
    "GET /debug/pprof/profile?seconds=2",
    "GET /debug/pprof/profile?seconds=300",
    "GET /debug/pprof/heap",
  ]);
});

test("a profile that fails leaves no file", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "tgctl-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const admin = await serve(t, (_request, response) => response.writeHead(500).end("busy\n"));
  const heap = ["proxy", "profile", "heap", "--local", "--proxy-admin-port", String(admin.port), "-o"];
  const file = join(folder, "p.pb.gz");
  assert.equal((await invoke([...heap, file])).stderr, "Error: heap profile returned 500: busy\n");
  assert.equal(existsSync(file), false);
  const nowhere = await invoke([...heap, join(folder, "no/such/folder")]);
  assert.match(nowhere.stderr, /^Error: failed to create output file .*: it does not exist/);
});
